#include "finch/config/keys.hpp"

#include "finch/config/config.hpp"
#include "finch/search/function.hpp"

#include "bind.hpp"

#include <limits>

/// Every key of a configuration, once: its name, the member that it sets (whose default is the key's), its bounds and
/// its meaning.
namespace finch::config {
namespace {

constexpr std::int64_t million = 1000000;

Domain either(std::vector<Domain> domains) {
    return {Either{std::move(domains)}};
}
Domain whole(std::int64_t low, std::int64_t high) {
    return {Whole{low, high}};
}
Domain real(double low, double high) {
    return {Real{low, high, false}};
}
Domain above(double low, double high) {
    return {Real{low, high, true}};
}
Domain word_of(std::vector<std::string> some) {
    return {Word{std::move(some)}};
}
Domain or_null(Domain domain) {
    return either({{Null{}}, std::move(domain)});
}
Domain one_or_list(const Domain& domain) {
    return either({domain, {List{{domain}}}});
}
Domain section(std::vector<Key> keys) {
    return {Section{.keys = std::move(keys)}};
}
/// A key that sets nothing by itself: what stands there is read elsewhere.
Key unbound(std::string name, std::string fallback, Domain domain, std::string meaning) {
    return {std::move(name), std::move(fallback), std::move(domain), std::move(meaning)};
}

bool is_run_name(const std::string& text) {
    static const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    return !text.empty() && text.size() <= 100 && text.front() != '.' && text.front() != '-' &&
           text.find_first_not_of(letters) == std::string::npos;
}

bool is_path(const std::string& text) {
    return !text.empty() && text.size() <= 4096;
}

Domain path() {
    return {Text{"a path", is_path, {"some/where"}, {"''"}}};
}

void check_data(const data::Options& options, const Tree& written) {
    if (options.kind != data::Kind::generated && options.path.empty()) {
        fail(written["path"], "data.path",
             fmt::format("has no value; data of kind {} is read from there", word(options.kind)));
    }
}

Domain data_section() {
    using data::Options;
    std::vector<Key> keys{
        key("kind", &Options::kind,
            "idx: MNIST's format; cifar: CIFAR-10's binary version; hdf5: training/images, training/labels, "
            "test/images, test/labels; generated: distorted digits")
            .with_genes(Rule::no),
        key("path", &Options::path, or_null(path()),
            "the folder with the files (hdf5: the file), relative to the working directory; generated needs none")
            .with_genes(Rule::no)
            .with_fixed(Rule::no),  // what lies there must be the same: its fingerprint is checked
        key("axes", &Options::axes,
            "hdf5: the order of the images' axes; auto: as their attribute axes says, else the one axis of 1 to 4 is C")
            .with_genes(Rule::no),
        group("normalize",
              section({key("mean", &Options::mean, one_or_list(real(0, 1)),
                           "subtracted after division by 255; a list has one per channel"),
                       key("deviation", &Options::deviation, one_or_list(above(0, 255)),
                           "divides after that; a list has one per channel")}),
              "pixels become (pixel / 255 - mean) / deviation"),
        key("training_samples", &Options::training_samples, either({word_of({"all"}), whole(1, 4294967295)}),
            "how many train; the seed chooses them from what validation leaves"),
        key("validation_samples", &Options::validation_samples, whole(1, 4294967295),
            "split off the training set by the seed; the test set is for the best model only")
            .with_default("2000"),
        key("samples", &Options::generated_samples, whole(10, 100 * million),
            "generated: size of the training set; the test set has a sixth of it")
            .with_genes(Rule::no),
        key("size", &Options::generated_size, whole(8, 512), "generated: height and width of an image in pixels")
            .with_genes(Rule::no),
    };
    return {Section{.keys = std::move(keys), .check = check_of<Options>(check_data)}};
}

template <class Layer>
Key activation() {
    return key("activation", &Layer::activation, "applied to the result");
}
template <class Layer>
Key repeat() {
    return key("repeat", &Layer::repeat, whole(0, 1000), "so many such layers in a row; 0: none");
}

Key pool(const std::string& name, backend::Pooling kind, const std::string& meaning) {
    using nn::PoolLayer;
    return alternative<nn::Layer>(
        name, PoolLayer{.kind = kind},
        {{key("kernel", &PoolLayer::kernel, whole(1, 1024), "height and width of the window"),
          key("stride", &PoolLayer::stride, either({word_of({"kernel"}), whole(1, 1024)}), "step of the window"),
          key("padding", &PoolLayer::padding, whole(0, 512),
              "rows and columns added on each side, at most half the kernel"),
          repeat<PoolLayer>()}},
        meaning);
}

/// `activation: relu`, which is no section.
Key activation_layer() {
    const Domain domain = word_of({"relu", "sigmoid", "tanh"});
    const auto set = [domain](const Tree& tree, const Place& layer) {
        layer.as<nn::Layer>() = nn::ActivationLayer{};
        read<backend::Activation>(
            tree, domain, layer.below(path_of(layer.path, "activation"), [](void* object) -> void* {
                return &std::get<nn::ActivationLayer>(*static_cast<nn::Layer*>(object)).activation;
            }));
    };
    return {"activation", "relu", domain, "an activation by itself", set};
}

Domain layer() {
    using nn::ConvLayer;
    using nn::LinearLayer;
    return {Variants{{
        alternative<nn::Layer>("conv", ConvLayer{},
                               {{key("channels", &ConvLayer::channels, whole(1, 65536), "channels of the result"),
                                 key("kernel", &ConvLayer::kernel, whole(1, 1024), "height and width of the kernel"),
                                 key("stride", &ConvLayer::stride, whole(1, 1024), "step of the kernel"),
                                 key("padding", &ConvLayer::padding, either({word_of({"same"}), whole(0, 1024)}),
                                     "rows and columns of zeros on each side; same: as many as keep the size"),
                                 activation<ConvLayer>(), repeat<ConvLayer>()}},
                               "a convolution with bias"),
        pool("max_pool", backend::Pooling::max, "the largest value of each window"),
        pool("average_pool", backend::Pooling::average, "the mean of each window"),
        alternative<nn::Layer>("flatten", nn::FlattenLayer{}, {},
                               "everything in a row, in the order channels, rows, columns"),
        alternative<nn::Layer>(
            "linear", LinearLayer{},
            {{key("units", &LinearLayer::units, either({word_of({"classes"}), whole(1, 16 * million)}),
                  "size of the result; classes: as many as the data has"),
              activation<LinearLayer>(), repeat<LinearLayer>()}},
            "every input to every unit, with bias"),
        activation_layer(),
    }}};
}

template <class Options>
Key weight_decay() {
    return key("weight_decay", &Options::weight_decay, real(0, 10), "pull of the weights towards zero");
}
template <class Options>
Key epsilon() {
    return key("epsilon", &Options::epsilon, above(0, 1), "keeps the denominator from zero");
}
template <class Options>
Section adam() {
    return {{key("beta1", &Options::beta1, real(0, 0.999999), "memory of the gradient's mean"),
             key("beta2", &Options::beta2, real(0, 0.999999), "memory of the squared gradient's mean"),
             epsilon<Options>(), weight_decay<Options>()}};
}

void check_sgd(const nn::SgdOptions& sgd, const Tree& written) {
    if (sgd.nesterov && sgd.momentum == 0) {
        fail(written["nesterov"], "training.optimizer.sgd.nesterov", "needs a momentum above 0");
    }
}

Domain optimizer() {
    using Any = nn::OptimizerOptions;
    using nn::AdadeltaOptions;
    using nn::SgdOptions;
    return {Variants{{
        alternative<Any>(
            "sgd", SgdOptions{},
            {.keys = {key("momentum", &SgdOptions::momentum, real(0, 0.999999), "share of the last step that goes on"),
                      weight_decay<SgdOptions>(),
                      key("nesterov", &SgdOptions::nesterov, "look ahead along the momentum, which must not be 0")},
             .check = check_of<SgdOptions>(check_sgd)},
            "stochastic gradient descent (torch.optim.SGD)"),
        alternative<Any>("adam", nn::AdamOptions{}, adam<nn::AdamOptions>(), "torch.optim.Adam"),
        alternative<Any>("adamw", nn::AdamWOptions{}, adam<nn::AdamWOptions>(), "torch.optim.AdamW"),
        alternative<Any>(
            "adadelta", AdadeltaOptions{},
            {{key("rho", &AdadeltaOptions::rho, real(0, 0.999999), "memory of squared gradients and steps"),
              epsilon<AdadeltaOptions>(), weight_decay<AdadeltaOptions>()}},
            "torch.optim.Adadelta"),
    }}};
}

Domain schedule() {
    using Any = nn::Schedule;
    using nn::CosineSchedule;
    using nn::ExponentialSchedule;
    using nn::StepSchedule;
    return {Variants{{
        alternative<Any>("constant", nn::ConstantSchedule{}, {}, "the same rate in every epoch"),
        alternative<Any>("step", StepSchedule{},
                         {{key("every", &StepSchedule::every, whole(1, million), "epochs between two changes"),
                           key("factor", &StepSchedule::factor, above(0, 10), "multiplies the rate")}},
                         "multiplied by a factor every so many epochs"),
        alternative<Any>(
            "exponential", ExponentialSchedule{},
            {{key("factor", &ExponentialSchedule::factor, above(0, 10), "multiplies the rate after each epoch")}},
            "multiplied by a factor after each epoch"),
        alternative<Any>(
            "cosine", CosineSchedule{},
            {{key("minimum", &CosineSchedule::minimum, real(0, 1), "share of the first rate that is left at the end")}},
            "down along half a cosine over all epochs"),
    }}};
}

void check_training(const train::Options& options, const Tree& written) {
    const bool whole_worker = written["batch_size"].kind != Tree::Kind::null;
    if (whole_worker == options.batch_size_per_rank.has_value()) {
        fail(written["batch_size_per_rank"], "training.batch_size_per_rank",
             whole_worker ? "stands beside batch_size; accepted: one of the two, the other null or left out"
                          : "is null, and so is batch_size; accepted: one of the two with a number");
    }
    if (whole_worker && options.scale_learning_rate != train::ScaleLearningRate::none) {
        fail(written["scale_learning_rate"], "training.scale_learning_rate",
             "needs batch_size_per_rank: with batch_size the genes train alike on any number of ranks");
    }
}

Domain training_section() {
    using train::Options;
    std::vector<Key> keys{
        key("epochs", &Options::epochs, whole(1, million), "passes over the training set at most"),
        key("batch_size", &Options::batch_size, or_null(whole(1, 16 * million)),
            "samples in one step of the whole worker, however many ranks it has; null: batch_size_per_rank says it"),
        key("batch_size_per_rank", &Options::batch_size_per_rank, or_null(whole(1, 16 * million)),
            "in place of batch_size: samples of each rank in one step"),
        key("scale_learning_rate", &Options::scale_learning_rate,
            "with batch_size_per_rank: multiply the rate by the number of ranks, or by its square root"),
        key("optimizer", &Options::optimizer, optimizer(), "torch.optim's definitions and defaults"),
        key("learning_rate", &Options::learning_rate, above(0, 1000), "the first epoch's rate"),
        key("schedule", &Options::schedule, schedule(), "how the rate changes from epoch to epoch"),
        group("early_stopping",
              either({word_of({"none"}), section({key("patience", &Options::patience, whole(1, million),
                                                      "epochs without a better value of the objective")
                                                      .with_default("5")})}),
              "end a training that does not improve")
            .with_default("none"),
        key("precision", &Options::precision,
            "of products; sums and memory are float32 in any case; all but float32 need a GPU"),
        key("deterministic", &Options::deterministic, "the same bits each time on the same kind of machine"),
    };
    return {Section{.keys = std::move(keys), .check = check_of<Options>(check_training)}};
}

Domain gene_section() {
    const double huge = 1e300;
    const std::int64_t exact = std::int64_t{1} << 53;  // whole numbers up to it are exact in a genome
    const Text option{"a word or a number",
                      [](const std::string& text) { return !text.empty() && text.front() != '$'; }};
    return {
        Section{.keys = {unbound("real", "[0, 1]", {List{{real(-huge, huge)}, 2, 2}}, "[low, high]: a real number"),
                         unbound("int", "[0, 1]", {List{{whole(-exact, exact)}, 2, 2}}, "[low, high]: a whole number"),
                         unbound("choice", "[a, b]", {List{{{option}}, 1, 10000}}, "one of several words or numbers"),
                         unbound("scale", "linear", word_of(all_words<search::Scale>()),
                                 "real: log draws uniformly in the logarithm")},
                .sparse = true}};
}

/// Fills in the function's own number of dimensions.
void complete_function(FunctionObjective& objective, const Tree& written) {
    const search::Function& function = search::find_function(objective.function);
    const auto refuse = [&](const std::string& why) {
        fail(written["dimensions"], "search.objective.dimensions", why);
    };
    if (objective.dimensions == 0) {
        objective.dimensions = function.default_dimensions;
    }
    if (!function.any_dimensions && objective.dimensions != function.default_dimensions) {
        refuse(fmt::format("{} has {} dimensions and no other number", function.name, function.default_dimensions));
    }
    try {
        (void)search::function_space(function, objective.dimensions);
    } catch (const ConfigError& error) {
        refuse(error.what());
    }
}

Key objective() {
    using F = FunctionObjective;
    std::vector<std::string> names;
    for (const search::Function& function : search::functions()) {
        names.push_back(function.name);
    }
    const Section function{
        {key("function", &F::function, word_of(names), "a benchmark function to be minimised").with_default("sphere"),
         key("dimensions", &F::dimensions, or_null(whole(1, 500)), "genes; null: the function's usual number")
             .with_default("null"),
         key("seconds", &F::seconds, real(0, 86400), "median time that an evaluation pretends to take"),
         key("spread", &F::spread, real(0, 10), "deviation of the logarithm of that time")}};
    const auto set = [function](const Tree& tree, const Place& config) {
        Objective& value = config.as<Config>().objective;
        if (tree.kind == Tree::Kind::scalar) {
            value = enumerator<LossObjective>(tree.text).value();
            return;
        }
        auto& chosen_function = value.emplace<FunctionObjective>();
        read_section(function, tree, Place{.object = &chosen_function, .path = "search.objective"});
        complete_function(chosen_function, tree);
    };
    return {"objective", "validation_loss", either({word_of(all_words<LossObjective>()), {function}}),
            "what is minimised; a function brings its own genes x0, x1, … and needs no model and no data", set};
}

void check_budget(const island::Budget& budget, const Tree& written) {
    if (!budget.evaluations && !budget.generations && !budget.hours && !budget.node_hours && !budget.target_loss) {
        fail(written, "search.budget",
             "never ends; accepted: at least one of evaluations, generations, hours, node_hours, target_loss with a "
             "number");
    }
}

Domain budget_section() {
    using island::Budget;
    return {
        Section{.keys = {key("evaluations", &Budget::evaluations, or_null(whole(1, 4000 * million)),
                             "of the whole run, exact, over restarts"),
                         key("generations", &Budget::generations, or_null(whole(1, 4000 * million)),
                             "evaluations of each worker"),
                         key("hours", &Budget::hours, or_null(above(0, million)), "wall time, summed over restarts"),
                         key("node_hours", &Budget::node_hours, or_null(above(0, million)),
                             "distinct nodes times wall time, summed over restarts"),
                         key("target_loss", &Budget::target_loss, or_null(real(-1e300, 1e300)),
                             "end once the best loss is this or smaller")},
                .check = check_of<Budget>(check_budget)}};
}

Domain propagator() {
    using Any = search::PropagatorOptions;
    using search::GeneticOptions;
    return {Variants{{
        alternative<Any>(
            "genetic", GeneticOptions{},
            {{key("population", &GeneticOptions::population, whole(2, million),
                  "parents are drawn from the best so many of an island"),
              key("crossover", &GeneticOptions::crossover, real(0, 1),
                  "probability that a gene comes from the first parent"),
              key("mutation", &GeneticOptions::mutation, real(0, 1), "probability that one gene is drawn anew"),
              key("random", &GeneticOptions::random, real(0, 1), "probability that all genes are drawn anew"),
              key("sigma", &GeneticOptions::sigma, real(0, 10),
                  "deviation of a real gene's change, as a share of its range")}},
            "crossover and mutation, as Propulate's default chain does it"),
        alternative<Any>("random", search::RandomSearchOptions{}, {}, "random search"),
    }}};
}

Domain exchange_section() {
    using Options = search::ExchangeOptions;
    return section(
        {key("kind", &Options::kind, "migration: individuals move; pollination: copies"),
         key("topology", &Options::topology, "all: every island to every other; ring: to the next"),
         key("probability", &Options::probability, real(0, 1),
             "per island and round of its workers (one evaluation of each)"),
         key("migrants", &Options::migrants, whole(1, million), "individuals per target island and exchange")});
}

Domain search_section() {
    return section({
        unbound("space", "{}", {Named{{gene_section()}}},
                "the genes: NAME: {real: [low, high]}, {int: …} or {choice: […]}")
            .with_fixed(Rule::yes),
        objective().with_fixed(Rule::yes),
        key("propagator", &Config::propagator, propagator(), "how individuals are bred"),
        key("exchange", &Config::exchange, exchange_section(), "between islands"),
        unbound("pruning", "none", word_of({"none"}), "ends unpromising trainings early"),
        key("budget", &Config::budget, budget_section(), "when the search ends: whichever comes first")
            .with_default("{evaluations: 100}"),
    });
}

/// A number of islands, or the sizes of all.
Key islands() {
    const auto set = [](const Tree& tree, const Place& place) {
        auto& workers = place.as<Workers>();
        for (const Tree& size : tree.items) {
            workers.island_sizes.push_back(static_cast<int>(whole_number(size).value()));
        }
        workers.islands = static_cast<int>(whole_number(tree).value_or(std::ssize(workers.island_sizes)));
    };
    return {"islands", "1", one_or_list(whole(1, million)), "a number, or the size of each in workers: [3, 1]", set};
}

Domain workers_section() {
    return section({
        key("ranks", &Workers::ranks, whole(1, million), "of one worker, which train one network together"),
        islands(),
        key("slots", &Workers::slots, whole(1, 1024), "individuals that one worker trains at once"),
        key("threads", &Workers::threads, either({word_of({"auto"}), whole(1, 4096)}),
            "of one rank; auto: the CPUs that it may use"),
        key("device", &Workers::device, "auto: a GPU where there is one"),
        key("communicator", &Workers::communicator, word_of({"auto", "nccl", "staged", "mpi"}),
            "for gradients; auto: NCCL on GPUs, MPI on CPUs"),
        key("share_device", &Workers::share_device, "let several ranks use one GPU"),
        key("timeout_seconds", &Workers::timeout_seconds, real(1, 86400),
            "for the start of a group, and for a collective that does not end"),
    });
}

Domain checkpoint_section() {
    return section({key("archive_seconds", &Checkpoint::archive_seconds, real(0.01, million),
                        "between two writings of population.h5, at least"),
                    key("training_seconds", &Checkpoint::training_seconds, real(0.01, million),
                        "between two snapshots of unfinished trainings")});
}

Domain log_section() {
    return section({key("level", &LogOptions::level, "the least that is told"),
                    key("ranks", &LogOptions::ranks, "who tells: world rank 0, every worker's leader, or all"),
                    key("path", &LogOptions::path, or_null(path()), "a file; null: standard output"),
                    key("interval_seconds", &LogOptions::interval_seconds, real(0.1, million),
                        "between two progress lines in a batch log")});
}

Section build_configuration() {
    const Text name{"letters, digits, '.', '_' and '-', at most 100, a letter, digit or '_' first",
                    is_run_name,
                    {"a", "run-1.b"},
                    {"a/b", ".hidden", "''", "'two words'", "-a"}};
    return {{
        key("name", &Config::name, {name}, "the run directory: runs/NAME (--run DIR says otherwise)"),
        key("seed", &Config::seed, whole(0, std::numeric_limits<std::int64_t>::max()),
            "all random choices depend on it")
            .with_fixed(Rule::yes),
        key("data", &train::Recipe::data, data_section(), "the images; $name may stand for a value")
            .with_genes(Rule::yes)
            .with_fixed(Rule::yes),
        key("model", &train::Recipe::model, {List{{layer()}, 1, 1000}}, "layers in order; $name may stand for a value")
            .with_default("[{conv: {activation: relu}}, max_pool, flatten, linear]")
            .with_genes(Rule::yes)
            .with_fixed(Rule::yes),
        key("training", &train::Recipe::training, training_section(), "of each individual; $name may stand for a value")
            .with_genes(Rule::yes)
            .with_fixed(Rule::yes),
        group("search", search_section(), "what is searched, and how"),
        key("workers", &Config::workers, workers_section(), "how ranks are grouped, and what they run on"),
        key("checkpoint", &Config::checkpoint, checkpoint_section(), "what a killed run can lose"),
        key("log", &Config::log, log_section(), "what is told, and where"),
    }};
}

}  // namespace

const Section& configuration() {
    static const Section all = build_configuration();
    return all;
}

}  // namespace finch::config
