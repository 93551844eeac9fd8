#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/config/tables.hpp"

#include "sections.hpp"

#include <functional>
#include <map>

namespace finch::config {
namespace {

/// One number, or one per channel.
std::vector<double> numbers_of(const Tree& tree) {
    if (tree.kind != Tree::Kind::list) {
        return {real_of(tree)};
    }
    std::vector<double> values;
    for (const Tree& item : tree.items) {
        values.push_back(real_of(item));
    }
    return values;
}

nn::Layer read_conv(const Tree& tree) {
    return nn::ConvLayer{.channels = whole_of(tree["channels"]),
                         .kernel = whole_of(tree["kernel"]),
                         .stride = whole_of(tree["stride"]),
                         .padding = optional_whole_of(tree["padding"]),
                         .activation = word_of<backend::Activation>(tree["activation"], words::activations),
                         .repeat = whole_of(tree["repeat"])};
}

nn::Layer read_pool(const Tree& tree, backend::Pooling kind) {
    const std::int64_t kernel = whole_of(tree["kernel"]);
    return nn::PoolLayer{.kind = kind,
                         .kernel = kernel,
                         .stride = optional_whole_of(tree["stride"]).value_or(kernel),
                         .padding = whole_of(tree["padding"]),
                         .repeat = whole_of(tree["repeat"])};
}

nn::Layer read_linear(const Tree& tree) {
    return nn::LinearLayer{.units = optional_whole_of(tree["units"]).value_or(0),
                           .activation = word_of<backend::Activation>(tree["activation"], words::activations),
                           .repeat = whole_of(tree["repeat"])};
}

nn::Layer read_layer(const Tree& layer) {
    if (layer.kind == Tree::Kind::scalar) {
        return nn::FlattenLayer{};  // the only layer without keys
    }
    const std::string& name = layer.keys.front();
    const Tree& value = layer.items.front();
    if (name == "conv") {
        return read_conv(value);
    }
    if (name == "max_pool" || name == "average_pool") {
        return read_pool(value, name == "max_pool" ? backend::Pooling::max : backend::Pooling::average);
    }
    if (name == "linear") {
        return read_linear(value);
    }
    return nn::ActivationLayer{word_of<backend::Activation>(value, words::activations)};
}

nn::OptimizerOptions read_optimizer(const Tree& tree) {
    const std::string& name = tree.keys.front();
    const Tree& keys = tree.items.front();
    const double weight_decay = real_of(keys["weight_decay"]);
    if (name == "sgd") {
        const nn::SgdOptions sgd{real_of(keys["momentum"]), weight_decay, flag_of(keys["nesterov"])};
        if (sgd.nesterov && sgd.momentum == 0) {
            fail(keys["nesterov"], "training.optimizer.sgd.nesterov", "needs a momentum above 0");
        }
        return sgd;
    }
    const double epsilon = real_of(keys["epsilon"]);
    if (name == "adam") {
        return nn::AdamOptions{real_of(keys["beta1"]), real_of(keys["beta2"]), epsilon, weight_decay};
    }
    if (name == "adamw") {
        return nn::AdamWOptions{real_of(keys["beta1"]), real_of(keys["beta2"]), epsilon, weight_decay};
    }
    return nn::AdadeltaOptions{real_of(keys["rho"]), epsilon, weight_decay};
}

nn::Schedule read_schedule(const Tree& tree) {
    if (tree.kind == Tree::Kind::scalar) {
        return nn::ConstantSchedule{};  // the only schedule without keys
    }
    const Tree& keys = tree.items.front();
    if (tree.keys.front() == "step") {
        return nn::StepSchedule{whole_of(keys["every"]), real_of(keys["factor"])};
    }
    if (tree.keys.front() == "exponential") {
        return nn::ExponentialSchedule{real_of(keys["factor"])};
    }
    return nn::CosineSchedule{real_of(keys["minimum"])};
}

void check_batch(const Tree& tree, const train::Options& options) {
    const bool whole_worker = tree["batch_size"].kind != Tree::Kind::null;
    if (whole_worker == options.batch_size_per_rank.has_value()) {
        fail(tree["batch_size_per_rank"], "training.batch_size_per_rank",
             whole_worker ? "stands beside batch_size; accepted: one of the two, the other null or left out"
                          : "is null, and so is batch_size; accepted: one of the two with a number");
    }
    if (whole_worker && options.scale_learning_rate != train::ScaleLearningRate::none) {
        fail(tree["scale_learning_rate"], "training.scale_learning_rate",
             "needs batch_size_per_rank: with batch_size the genes train alike on any number of ranks");
    }
}

}  // namespace

data::Options read_data(const Tree& data) {
    data::Options options;
    options.kind = word_of<data::Kind>(data["kind"], words::data_kinds);
    options.path = data["path"].text;
    options.axes = word_of<data::Axes>(data["axes"], words::data_axes);
    options.mean = numbers_of(data["normalize"]["mean"]);
    options.deviation = numbers_of(data["normalize"]["deviation"]);
    options.training_samples = optional_whole_of(data["training_samples"]);
    options.validation_samples = whole_of(data["validation_samples"]);
    options.generated_samples = whole_of(data["samples"]);
    options.generated_size = whole_of(data["size"]);
    if (options.kind != data::Kind::generated && options.path.empty()) {
        fail(data["path"], "data.path",
             fmt::format("has no value; data of kind {} is read from there", data["kind"].text));
    }
    return options;
}

nn::ModelSpec read_model(const Tree& model) {
    nn::ModelSpec spec;
    for (const Tree& layer : model.items) {
        spec.push_back(read_layer(layer));
    }
    return spec;
}

train::Options read_training(const Tree& tree) {
    train::Options options;
    options.epochs = whole_of(tree["epochs"]);
    options.batch_size = optional_whole_of(tree["batch_size"]).value_or(options.batch_size);
    options.batch_size_per_rank = optional_whole_of(tree["batch_size_per_rank"]);
    options.scale_learning_rate =
        word_of<train::ScaleLearningRate>(tree["scale_learning_rate"], words::scale_learning_rate);
    options.optimizer = read_optimizer(tree["optimizer"]);
    options.learning_rate = real_of(tree["learning_rate"]);
    options.schedule = read_schedule(tree["schedule"]);
    if (const Tree& early = tree["early_stopping"]; early.kind == Tree::Kind::map) {
        options.patience = whole_of(early["patience"]);
    }
    options.precision = word_of<train::Precision>(tree["precision"], words::precisions);
    options.deterministic = flag_of(tree["deterministic"]);
    check_batch(tree, options);
    return options;
}

}  // namespace finch::config
