#include "finch/data/dataset.hpp"
#include "finch/nn/optimizer.hpp"
#include "finch/nn/schedule.hpp"
#include "finch/nn/spec.hpp"
#include "finch/train/recipe.hpp"

#include "bind.hpp"
#include "domains.hpp"

/// The keys of model and training. Values of these keys may be genes, as in the section data.
namespace finch::config {
namespace {

template <class Layer>
Key activation() {
    return key("activation", &Layer::activation, "activation function that is applied to the output");
}
template <class Layer>
Key repeat() {
    return key("repeat", &Layer::repeat, whole(0, 1000), "number of such layers in a row; 0: none").as_repeat();
}

Key pool(const std::string& name, backend::Pooling kind, const std::string& meaning) {
    using nn::PoolLayer;
    return alternative<nn::Layer>(name, PoolLayer{.kind = kind},
                                  {{key("kernel", &PoolLayer::kernel, whole(1, 1024), "height and width of the window"),
                                    key("stride", &PoolLayer::stride, either({word_of({"kernel"}), whole(1, 1024)}),
                                        "step of the window in pixels; kernel: as large as the window"),
                                    key("padding", &PoolLayer::padding, whole(0, 512),
                                        "rows and columns that are added on each side, at most half the kernel"),
                                    repeat<PoolLayer>()}},
                                  meaning);
}

/// The layer `activation: relu`. The value of this layer is a word, not a section.
Key activation_layer() {
    const Domain domain = word_but_none<backend::Activation>();
    const auto set = [domain](const Tree& tree, const Target& layer) {
        layer.as<nn::Layer>() = nn::ActivationLayer{};
        const Step activation{[](void* object, std::size_t) -> void* {
            return &std::get<nn::ActivationLayer>(*static_cast<nn::Layer*>(object)).activation;
        }};
        read(value_type<backend::Activation>(), tree, domain,
             layer.below(path_of(layer.path, "activation"), activation));
    };
    return {"activation", "relu", domain, "an activation function as a separate layer", set};
}

constexpr int most_blocks = 2;  ///< nesting depth

/// Returns the domain of a list of layers. Blocks of layers may be nested up to `blocks` levels deep.
Domain layers(int blocks);

Key block(int blocks) {
    using nn::BlockLayer;
    return alternative<nn::Layer>(
        "block", BlockLayer{},
        {{key("layers", &BlockLayer::layers, layers(blocks - 1), "layers of the block's body").with_default("[conv]"),
          key("residual", &BlockLayer::residual,
              "combines the block's input with the body's output, as the key join says"),
          key("join", &BlockLayer::join,
              "add: the sum of input and output, if their shapes differ after a convolution of the input with a kernel "
              "of 1; concatenate: the input's channels, then the output's"),
          activation<BlockLayer>(), repeat<BlockLayer>()}},
        "several layers as one module");
}

Domain layer(int blocks) {
    using nn::BatchNormLayer;
    using nn::ConvLayer;
    using nn::DropoutLayer;
    using nn::LayerNormLayer;
    using nn::LinearLayer;
    Variants variants{{
        alternative<nn::Layer>(
            "conv", ConvLayer{},
            {{key("channels", &ConvLayer::channels, whole(1, 65536), "number of output channels"),
              key("kernel", &ConvLayer::kernel, whole(1, 1024), "height and width of the kernel"),
              key("stride", &ConvLayer::stride, whole(1, 1024), "step of the kernel in pixels"),
              key("dilation", &ConvLayer::dilation, whole(1, 1024),
                  "distance between neighbouring kernel elements in pixels"),
              key("groups", &ConvLayer::groups, either({word_of({"depthwise"}), whole(1, 65536)}),
                  "number of channel groups that are convolved separately; depthwise: one group per channel"),
              key("padding", &ConvLayer::padding, either({word_of({"same"}), whole(0, 1024)}),
                  "rows and columns of zeros on each side; same: the output has the input's size divided by the "
                  "stride, rounded up"),
              activation<ConvLayer>(), repeat<ConvLayer>()}},
            "a convolution with bias"),
        pool("max_pool", backend::Pooling::max, "pooling: the largest value of each window"),
        pool("average_pool", backend::Pooling::average, "pooling: the mean of each window"),
        alternative<nn::Layer>("global_average_pool", nn::GlobalAveragePoolLayer{}, {},
                               "pooling: the mean of each channel"),
        alternative<nn::Layer>("flatten", nn::FlattenLayer{}, {},
                               "all values in one row, in the order channels, rows, columns"),
        alternative<nn::Layer>(
            "linear", LinearLayer{},
            {{key("units", &LinearLayer::units, either({word_of({"classes"}), whole(1, 16 * million)}),
                  "number of outputs; classes: the number of classes, or for regression of numbers per target"),
              activation<LinearLayer>(), repeat<LinearLayer>()}},
            "a fully connected layer with bias"),
        activation_layer(),
        alternative<nn::Layer>("batch_norm", BatchNormLayer{},
                               {{key("momentum", &BatchNormLayer::momentum, real(0, 1),
                                     "weight of the current batch in the running mean and variance"),
                                 key("epsilon", &BatchNormLayer::epsilon, above(0, 1),
                                     "small number that keeps the denominator above zero"),
                                 activation<BatchNormLayer>()}},
                               "normalises each channel over the whole worker's batch"),
        alternative<nn::Layer>("layer_norm", LayerNormLayer{},
                               {{key("epsilon", &LayerNormLayer::epsilon, above(0, 1),
                                     "small number that keeps the denominator above zero"),
                                 activation<LayerNormLayer>()}},
                               "normalises each sample over all its values, with a weight and a bias for each channel"),
        alternative<nn::Layer>(
            "dropout", DropoutLayer{},
            {{key("rate", &DropoutLayer::rate, real(0, 0.999999), "probability that a value becomes 0 in training")}},
            "sets values to 0 with probability rate in training, and scales the others by 1 / (1 - rate)"),
    }};
    if (blocks > 0) {
        variants.alternatives.push_back(block(blocks));
    }
    return {std::move(variants)};
}

Domain layers(int blocks) {
    return {List{.element = {layer(blocks)}, .described = blocks < most_blocks}};
}

template <class Options>
Key weight_decay() {
    return key("weight_decay", &Options::weight_decay, real(0, 10), "weight decay (L2; decoupled for adamw)");
}
template <class Options>
Key epsilon() {
    return key("epsilon", &Options::epsilon, above(0, 1), "small number that keeps the denominator above zero");
}
template <class Options>
Section adam() {
    return {{key("beta1", &Options::beta1, real(0, 0.999999), "decay rate of the running mean of the gradient"),
             key("beta2", &Options::beta2, real(0, 0.999999), "decay rate of the running mean of the squared gradient"),
             epsilon<Options>(), weight_decay<Options>()}};
}

void check_sgd(const backend::Sgd& sgd, const Tree& written) {
    if (sgd.nesterov && sgd.momentum == 0) {
        fail(written["nesterov"], "training.optimizer.sgd.nesterov", "needs a momentum above 0");
    }
}

Domain optimizer() {
    using Any = backend::Optimizer;
    using backend::Adadelta;
    using backend::Sgd;
    return {Variants{{
        alternative<Any>(
            "sgd", Sgd{},
            {.keys = {key("momentum", &Sgd::momentum, real(0, 0.999999), "momentum factor"), weight_decay<Sgd>(),
                      key("nesterov", &Sgd::nesterov, "Nesterov momentum; needs a momentum above 0")},
             .check = check_of<Sgd>(check_sgd)},
            "stochastic gradient descent (torch.optim.SGD)"),
        alternative<Any>("adam", backend::Adam{}, adam<backend::Adam>(), "torch.optim.Adam"),
        alternative<Any>("adamw", backend::AdamW{}, adam<backend::AdamW>(), "torch.optim.AdamW"),
        alternative<Any>("adadelta", Adadelta{},
                         {{key("rho", &Adadelta::rho, real(0, 0.999999),
                               "decay rate of the running means of squared gradients and squared steps"),
                           epsilon<Adadelta>(), weight_decay<Adadelta>()}},
                         "torch.optim.Adadelta"),
    }}};
}

Domain schedule() {
    using Any = nn::Schedule;
    using nn::CosineSchedule;
    using nn::ExponentialSchedule;
    using nn::OneCycleSchedule;
    using nn::StepSchedule;
    return {Variants{{
        alternative<Any>("constant", nn::ConstantSchedule{}, {}, "the learning rate stays the same"),
        alternative<Any>(
            "step", StepSchedule{},
            {{key("every", &StepSchedule::every, whole(1, million), "number of epochs between two changes"),
              key("factor", &StepSchedule::factor, above(0, 10), "factor by which the rate is multiplied")}},
            "the learning rate is multiplied by a factor at regular intervals of epochs"),
        alternative<Any>("exponential", ExponentialSchedule{},
                         {{key("factor", &ExponentialSchedule::factor, above(0, 10),
                               "factor by which the rate is multiplied after each epoch")}},
                         "the learning rate is multiplied by a factor after each epoch"),
        alternative<Any>("cosine", CosineSchedule{},
                         {{key("minimum", &CosineSchedule::minimum, real(0, 1), "last rate, as a share of the first")}},
                         "the learning rate falls along half a cosine over all epochs"),
        alternative<Any>(
            "one_cycle", OneCycleSchedule{},
            {{key("rise", &OneCycleSchedule::rise, real(0, 0.999999), "share of the training in which the rate rises"),
              key("start", &OneCycleSchedule::start, above(0, 1), "first rate, as a share of the highest"),
              key("minimum", &OneCycleSchedule::minimum, real(0, 1), "last rate, as a share of the highest")}},
            "the learning rate rises along half a cosine, then falls along another; it changes at every step, with "
            "either pace"),
    }}};
}

void check_training(const train::Options& options, const Tree& written) {
    const bool whole_worker = written["batch_size"].kind != Tree::Kind::null;
    if (whole_worker == options.batch_size_per_rank.has_value()) {
        fail(written["batch_size_per_rank"], "training.batch_size_per_rank",
             whole_worker ? "cannot be combined with batch_size; accepted: one of the two, the other null or left out"
                          : "is null, and so is batch_size; accepted: one of the two with a number");
    }
    if (whole_worker && options.scale_learning_rate != train::ScaleLearningRate::none) {
        fail(written["scale_learning_rate"], "training.scale_learning_rate",
             "needs batch_size_per_rank: with batch_size the genes train alike on any number of ranks");
    }
    if (options.balanced_classes && !options.class_weights.empty()) {
        fail(written["balanced_classes"], "training.balanced_classes",
             "cannot be combined with class_weights; accepted: one of them");
    }
    if (options.loss != train::Loss::cross_entropy) {
        const auto refuse = [&](bool there, const char* key) {
            if (there) {
                fail(written[key], path_of("training", key),
                     fmt::format("is of classes, but training.loss is {}", word(options.loss)));
            }
        };
        refuse(options.label_smoothing > 0 || is_gene(written["label_smoothing"]), "label_smoothing");
        refuse(!options.class_weights.empty(), "class_weights");
        refuse(options.balanced_classes, "balanced_classes");
    }
}

}  // namespace

std::vector<std::pair<std::string, double>> usual_rates() {
    return {{"sgd", backend::Sgd::usual_rate},
            {"adam", backend::Adam::usual_rate},
            {"adamw", backend::AdamW::usual_rate},
            {"adadelta", backend::Adadelta::usual_rate}};
}

Domain model_layers() {
    return layers(most_blocks);
}

Domain training_section() {
    using train::Options;
    std::vector<Key> keys{
        key("epochs", &Options::epochs, whole(1, million), "maximum number of passes over the training set"),
        key("batch_size", &Options::batch_size, or_null(whole(1, 16 * million)),
            "samples in one step of the whole worker, with any number of ranks; null: batch_size_per_rank is used"),
        key("batch_size_per_rank", &Options::batch_size_per_rank, or_null(whole(1, 16 * million)),
            "instead of batch_size: samples of each rank in one step"),
        key("micro_batches", &Options::micro_batches, whole(1, 4096),
            "number of parts of a batch that are computed one after the other; their gradients are added before the "
            "sum over the ranks; needs less memory for the same step, but batch_norm normalises each part separately"),
        key("scale_learning_rate", &Options::scale_learning_rate,
            "with batch_size_per_rank: multiplies the learning rate by the number of ranks (linear) or its square root "
            "(sqrt)"),
        key("optimizer", &Options::optimizer, optimizer(),
            "optimizer, with the definitions and defaults of torch.optim"),
        key("initialization", &Options::initialization,
            "initial weights: pytorch: the defaults of torch.nn's layers; he: normal, for relu; xavier: uniform, for "
            "sigmoid and tanh; he and xavier begin with biases of 0"),
        key("learning_rate", &Options::learning_rate, either({word_of({"auto"}), above(0, 1000)}),
            "first learning rate (for one_cycle the highest); auto: 1 for adadelta, 0.01 for sgd, 0.001 for adam and "
            "adamw"),
        key("schedule", &Options::schedule, schedule(), "how the learning rate changes"),
        key("pace", &Options::pace, "interval at which the learning rate changes"),
        key("warm_up_epochs", &Options::warm_up_epochs, real(0, million),
            "number of epochs (also a part of one) in which the learning rate rises linearly with the steps up to the "
            "schedule's rate"),
        key("clip_norm", &Options::clip_norm, either({word_of({"none"}), above(0, 1e9)}),
            "maximum norm of the whole worker's gradient; larger gradients are scaled down to it "
            "(torch.nn.utils.clip_grad_norm_)"),
        key("decay_all", &Options::decay_all,
            "true: weight decay also applies to biases and normalisations; false: only to the weights of convolutions "
            "and linear layers"),
        key("loss", &Options::loss,
            "loss function: torch.nn's CrossEntropyLoss for classes, or MSELoss or L1Loss for regression (data of kind "
            "hdf5 with labels of (N) or (N, K) numbers), which has no accuracy")
            .with_genes(Rule::no),
        key("class_weights", &Options::class_weights, either({word_of({"none"}), {List{{real(1e-6, 1e6)}, 2, 65536}}}),
            "weight of each class, by which the losses of its samples are multiplied, in training and validation; a "
            "mean loss is the sum of these products divided by the sum of the samples' weights")
            .with_genes(Rule::no),
        key("balanced_classes", &Options::balanced_classes,
            "computes the class weights from the training samples: samples / (classes x samples of the class)")
            .with_genes(Rule::no),
        key("label_smoothing", &Options::label_smoothing, real(0, 0.999999),
            "share of each label that is spread evenly over all classes, in training"),
        key("average", &Options::average, either({word_of({"none"}), real(0, 0.999999)}),
            "decay of an exponential moving average of the weights: the share of the average that stays after each "
            "step; validation and the saved model use the average (torch.optim.swa_utils.get_ema_multi_avg_fn)"),
        group("early_stopping",
              either(
                  {word_of({"none"}),
                   section({key("patience", &Options::patience, whole(1, million),
                                "number of epochs without a better value of the objective, after which a training ends")
                                .with_default("5")})}),
              "ends a training that no longer improves")
            .with_default("none"),
        key("precision", &Options::precision,
            "precision of the factors in products; sums and values in memory are always float32; tf32 and float16 need "
            "a GPU, bfloat16 a GPU or a processor with AVX512-BF16 or AMX; float16 scales the loss and skips steps "
            "with gradients that overflow"),
        key("deterministic", &Options::deterministic, "gives the same bits each time on the same kind of machine"),
        key("watch", &Options::watch,
            "records the norms of weights and gradients of each layer after each epoch, as metrics (docs/files.md); "
            "the "
            "gradient is that of the epoch's last step, after clip_norm")
            .with_genes(Rule::no)
            .with_fixed(Rule::no),
        key("inherit", &Options::inherit,
            "a child begins with its first parent's best weights, if they are still kept and all tensors have the same "
            "shapes")
            .with_genes(Rule::no),
    };
    return {Section{.keys = std::move(keys), .check = check_of<Options>(check_training)}};
}

}  // namespace finch::config
