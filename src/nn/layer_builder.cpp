#include "layer_builder.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <utility>

namespace finch::nn {
namespace {

/// More floats than any device can hold. The builder refuses a larger product of axes before it can overflow.
constexpr double float_limit = 1e13;
constexpr std::size_t most_nodes = 10000;

}  // namespace

LayerBuilder::LayerBuilder(SampleShape input, std::int64_t classes, std::int64_t batch, Numerics numerics)
    : graph_(input, classes, batch, numerics), batch_(batch) {
    now_.shape = input;
    check_size(input);
}

void LayerBuilder::require(bool holds, const std::string& problem) const {
    if (!holds) {
        throw ModelError(layer_, place_ + ": " + problem);
    }
}

void LayerBuilder::require_at_least(std::int64_t least, std::int64_t value, const char* what) const {
    require(value >= least, fmt::format("{} is {}; it must be at least {}", what, value, least));
}

void LayerBuilder::check_size(const SampleShape& shape) const {
    require(static_cast<double>(shape.height) * static_cast<double>(shape.width) * static_cast<double>(shape.channels) *
                    static_cast<double>(batch_) <=
                float_limit,
            "its output is larger than any memory");
}

void LayerBuilder::require_image(const char* what) const {
    require(!now_.flat, fmt::format("a {} needs (height, width, channels), but a flatten stands before it; put it "
                                    "before the flatten",
                                    what));
}

void LayerBuilder::require_channels() const {
    require(!now_.flat || now_.shape.height * now_.shape.width == 1,
            "a flatten of an image stands before it; put it before the flatten, or after a linear layer");
}

void LayerBuilder::require_fit(std::int64_t kernel, std::int64_t padding) const {
    require(kernel <= now_.shape.height + padding && kernel <= now_.shape.width + padding,
            fmt::format("kernel {} does not fit into its input of {} x {} with {} of padding in all; "
                        "accepted: a smaller kernel, more padding, or fewer layers before it that shrink the image",
                        kernel, now_.shape.height, now_.shape.width, padding));
}

void LayerBuilder::push_convolution(backend::ConvolutionShape shape, const std::string& module) {
    shape.batch = batch_;
    shape.height = now_.shape.height;
    shape.width = now_.shape.width;
    shape.channels_in = now_.shape.channels;
    const std::int64_t group_in = shape.channels_in / shape.groups;
    add_weights(module, {shape.channels_out, group_in, shape.kernel, shape.kernel},
                group_in * shape.kernel * shape.kernel);
    push(shape, {shape.height_out(), shape.width_out(), shape.channels_out});
}

void LayerBuilder::push_linear(std::int64_t units, backend::Activation activation, const std::string& module) {
    add_weights(module, {units, now_.shape.size()}, now_.shape.size());
    push(backend::LinearShape{.batch = batch_,
                              .height = now_.shape.height,
                              .width = now_.shape.width,
                              .channels = now_.shape.channels,
                              .units = units,
                              .activation = activation},
         {1, 1, units});
}

void LayerBuilder::push_activation(backend::Activation activation) {
    push(backend::ActivationShape{.count = batch_ * now_.shape.size(), .activation = activation}, now_.shape);
}

void LayerBuilder::push_add(const Flow& other, backend::Activation activation) {
    push(backend::AddShape{.count = batch_ * other.shape.size(), .activation = activation}, other.shape,
         {other.value, now_.value});
    now_.flat = other.flat;
}

void LayerBuilder::push_concatenation(const Flow& before) {
    require(
        now_.shape.height == before.shape.height && now_.shape.width == before.shape.width && now_.flat == before.flat,
        fmt::format("its body makes ({}, {}, {}) of ({}, {}, {}); for a concatenation height and width must stay",
                    now_.shape.height, now_.shape.width, now_.shape.channels, before.shape.height, before.shape.width,
                    before.shape.channels));
    require_channels();
    SampleShape out = now_.shape;
    out.channels += before.shape.channels;
    push(
        backend::ConcatenateShape{
            .rows = batch_ * out.height * out.width, .first = before.shape.channels, .second = now_.shape.channels},
        out, {before.value, now_.value});
}

void LayerBuilder::push(const backend::OperationShape& operation, SampleShape out, std::vector<std::size_t> inputs) {
    check_size(out);
    require(graph_.plan().nodes.size() < most_nodes, fmt::format("the model has more than {} operations", most_nodes));
    now_.value = graph_.push(operation, out, std::move(inputs));
    now_.shape = out;
}

void LayerBuilder::add_weights(const std::string& module, std::vector<std::int64_t> weight_shape, std::int64_t fan_in) {
    const std::int64_t outputs = weight_shape.front();
    require(static_cast<double>(fan_in) * static_cast<double>(outputs) <= float_limit,
            "its weights are larger than any memory");
    graph_.add_tensor({.name = module + ".weight", .shape = std::move(weight_shape), .fan_in = fan_in});
    graph_.add_tensor({.name = module + ".bias", .shape = {outputs}, .fan_in = fan_in});
}

std::string LayerBuilder::add_norm() {
    require_channels();
    const std::string module = next_module();
    graph_.add_tensor({.name = module + ".weight", .shape = {now_.shape.channels}, .initial = 1});
    graph_.add_tensor({.name = module + ".bias", .shape = {now_.shape.channels}});
    return module;
}

std::string LayerBuilder::next_module() {
    return fmt::format("{}{}", modules_.prefix, modules_.count++);
}
void LayerBuilder::finish_activation(backend::Activation activation) {
    if (needs_its_input(activation)) {
        push_activation(activation);
    }
    modules_.count += activation == backend::Activation::none ? 0 : 1;
}

}  // namespace finch::nn
