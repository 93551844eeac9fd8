#include "finch/nn/plan.hpp"

#include "finch/base/enum_words.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "layer_builder.hpp"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <utility>

namespace finch::nn {
namespace {

std::string kind_name(const ConvLayer& /*layer*/) {
    return "conv";
}
std::string kind_name(const PoolLayer& layer) {
    switch (layer.kind) {
        case backend::Pooling::max:
            return "max_pool";
        case backend::Pooling::average:
            return "average_pool";
    }
    return "pool";
}
std::string kind_name(const GlobalAveragePoolLayer& /*layer*/) {
    return "global_average_pool";
}
std::string kind_name(const FlattenLayer& /*layer*/) {
    return "flatten";
}
std::string kind_name(const LinearLayer& /*layer*/) {
    return "linear";
}
std::string kind_name(const ActivationLayer& layer) {
    return std::string(word(layer.activation));
}
std::string kind_name(const BatchNormLayer& /*layer*/) {
    return "batch_norm";
}
std::string kind_name(const LayerNormLayer& /*layer*/) {
    return "layer_norm";
}
std::string kind_name(const DropoutLayer& /*layer*/) {
    return "dropout";
}
std::string kind_name(const BlockLayer& /*layer*/) {
    return "block";
}

template <class AnyLayer>
std::int64_t repetitions(const AnyLayer& layer) {
    if constexpr (requires { layer.repeat; }) {
        return layer.repeat;
    } else {
        return 1;
    }
}

/// A LayerBuilder that visits the layers of a model in forward order.
class Planner : LayerBuilder {
public:
    Planner(SampleShape input, std::int64_t classes, std::int64_t batch, Numerics numerics)
        : LayerBuilder(input, classes, batch, numerics), classes_(classes) {}

    /// Adds `layers`. `list` is the place of the layers in the configuration, for error messages.
    void add(const ModelSpec& layers, const std::string& list) {
        for (std::size_t i = 0; i < layers.size(); ++i) {
            layer_ = modules_.prefix.empty() ? static_cast<std::int64_t>(i) : layer_;
            std::visit([&](const auto& layer) { add(layer, fmt::format("{}[{}]", list, i)); }, layers[i]);
        }
    }

    ModelPlan finish() && {
        check_end();
        return std::move(graph_).finish();
    }

private:
    template <class AnyLayer>
    void add(const AnyLayer& layer, const std::string& at) {
        const std::string place = fmt::format("{} ({})", at, kind_name(layer));
        const std::int64_t count = repetitions(layer);
        place_ = place;
        require_at_least(0, count, "repeat");
        for (std::int64_t i = 0; i < count; ++i) {
            place_ = place;
            append(layer, at);
            last_activation_ = activation_after(layer);
        }
    }

    /// Returns the activation at the end of a layer. For a block that only groups layers, returns the last activation
    /// of the block's body.
    template <class AnyLayer>
    backend::Activation activation_after(const AnyLayer& layer) const {
        if constexpr (std::same_as<AnyLayer, BlockLayer>) {
            const bool groups = !layer.residual && layer.activation == backend::Activation::none;
            return groups ? last_activation_ : layer.activation;
        } else if constexpr (requires { layer.activation; }) {
            return layer.activation;
        } else {
            return backend::Activation::none;
        }
    }

    void append(const ConvLayer& layer, const std::string& /*at*/) {
        require_image("conv");
        require_at_least(1, layer.channels, "channels");
        require_at_least(1, layer.kernel, "kernel");
        require_at_least(1, layer.stride, "stride");
        require_at_least(0, layer.padding.value_or(0), "padding");
        require_at_least(1, layer.dilation, "dilation");
        require_at_least(0, layer.groups, "groups");
        const std::int64_t groups = layer.groups == 0 ? now_.shape.channels : layer.groups;
        require(now_.shape.channels % groups == 0 && layer.channels % groups == 0,
                fmt::format("{} groups do not divide its {} channels in and {} out", groups, now_.shape.channels,
                            layer.channels));
        const std::int64_t beyond = layer.dilation * (layer.kernel - 1);
        const std::int64_t before = layer.padding.value_or(beyond / 2);
        const std::int64_t after = layer.padding.value_or(beyond - before);
        require(
            layer.padding || before < std::max(now_.shape.height, now_.shape.width),
            fmt::format("kernel {} with dilation {} reaches so far beyond its input of {} x {} that its outer places "
                        "never see a pixel; a smaller one would",
                        layer.kernel, layer.dilation, now_.shape.height, now_.shape.width));
        require_fit(beyond + 1, before + after);
        push_convolution({.channels_out = layer.channels,
                          .kernel = layer.kernel,
                          .stride = layer.stride,
                          .padding_before = before,
                          .padding_after = after,
                          .dilation = layer.dilation,
                          .groups = groups,
                          .activation = fused(layer.activation)},
                         next_module());
        finish_activation(layer.activation);
    }

    void append(const PoolLayer& layer, const std::string& /*at*/) {
        require_image("pool");
        require_at_least(1, layer.kernel, "kernel");
        const std::int64_t stride = layer.stride.value_or(layer.kernel);
        require_at_least(1, stride, "stride");
        require_at_least(0, layer.padding, "padding");
        require(
            2 * layer.padding <= layer.kernel,
            fmt::format("padding is {}; it must be at most half of the kernel, {}", layer.padding, layer.kernel / 2));
        require_fit(layer.kernel, 2 * layer.padding);
        backend::PoolingShape shape{.kind = layer.kind,
                                    .batch = batch_,
                                    .height = now_.shape.height,
                                    .width = now_.shape.width,
                                    .channels = now_.shape.channels,
                                    .kernel = layer.kernel,
                                    .stride = stride,
                                    .padding = layer.padding};
        push(shape, {shape.height_out(), shape.width_out(), now_.shape.channels});
        static_cast<void>(next_module());
    }

    void append(const GlobalAveragePoolLayer& /*layer*/, const std::string& /*at*/) {
        require_image("global_average_pool");
        push(
            backend::MeanShape{
                .batch = batch_, .pixels = now_.shape.height * now_.shape.width, .channels = now_.shape.channels},
            {1, 1, now_.shape.channels});
        static_cast<void>(next_module());
    }

    /// A flatten moves no data: the linear layer after it reads NHWC and stores the columns of its weight in CHW order.
    void append(const FlattenLayer& /*layer*/, const std::string& /*at*/) {
        now_.flat = true;
        static_cast<void>(next_module());
    }

    void append(const LinearLayer& layer, const std::string& /*at*/) {
        require(now_.flat || (now_.shape.height == 1 && now_.shape.width == 1),
                fmt::format("its input is ({}, {}, {}), not a list of features; put a flatten before it",
                            now_.shape.height, now_.shape.width, now_.shape.channels));
        require_at_least(0, layer.units, "units");
        const std::int64_t units = layer.units == 0 ? classes_ : layer.units;
        push_linear(units, fused(layer.activation), next_module());
        finish_activation(layer.activation);
    }

    void append(const ActivationLayer& layer, const std::string& /*at*/) {
        if (layer.activation != backend::Activation::none) {
            push_activation(layer.activation);
            static_cast<void>(next_module());
        }
    }

    void append(const BatchNormLayer& layer, const std::string& /*at*/) {
        const std::int64_t channels = now_.shape.channels;
        const std::string module = add_norm();
        graph_.add_tensor({.name = module + ".running_mean", .shape = {channels}, .learns = false});
        graph_.add_tensor({.name = module + ".running_var", .shape = {channels}, .learns = false, .initial = 1});
        graph_.add_counter(module + ".num_batches_tracked");
        push(backend::BatchNormShape{.batch = batch_,
                                     .pixels = now_.shape.height * now_.shape.width,
                                     .channels = channels,
                                     .momentum = layer.momentum,
                                     .epsilon = layer.epsilon,
                                     .activation = fused(layer.activation)},
             now_.shape);
        finish_activation(layer.activation);
    }

    void append(const LayerNormLayer& layer, const std::string& /*at*/) {
        static_cast<void>(add_norm());
        push(backend::LayerNormShape{.batch = batch_,
                                     .pixels = now_.shape.height * now_.shape.width,
                                     .channels = now_.shape.channels,
                                     .epsilon = layer.epsilon},
             now_.shape);
        append(ActivationLayer{layer.activation}, "");
    }

    void append(const DropoutLayer& layer, const std::string& /*at*/) {
        require(layer.rate >= 0 && layer.rate < 1, fmt::format("rate is {}; it must be in [0, 1)", layer.rate));
        push(
            backend::DropoutShape{
                .batch = batch_, .features = now_.shape.size(), .rate = layer.rate, .layer = dropouts_++},
            now_.shape);
        static_cast<void>(next_module());
    }

    void append(const BlockLayer& layer, const std::string& at) {
        const std::string place = place_;
        const std::string module = next_module();
        const Flow before = now_;
        const Modules outer = std::exchange(modules_, {.prefix = module + ".body."});
        add(layer.layers, at + ".layers");
        modules_ = outer;
        place_ = place;
        const bool adds = layer.residual && layer.join == Join::add;
        if (adds) {
            const Flow body = std::exchange(now_, before);
            if (body.shape != before.shape) {
                project(body, module + ".shortcut");
            }
            push_add(body, fused(layer.activation));
        } else if (layer.residual) {
            push_concatenation(before);
        }
        if (layer.activation != backend::Activation::none && (!adds || needs_its_input(layer.activation))) {
            push_activation(layer.activation);
        }
    }

    /// Adds the shortcut layer that converts a block's input to the shape of the body's output.
    void project(const Flow& body, const std::string& module) {
        require(body.flat == now_.flat, "a flatten within a residual block; put it before or after the block");
        if (now_.flat) {
            require(body.shape.height * body.shape.width == 1,
                    "its body changes the shape of what a flatten gave without a linear layer");
            push_linear(body.shape.channels, backend::Activation::none, module);
            return;
        }
        const std::int64_t stride = (now_.shape.height + body.shape.height - 1) / body.shape.height;
        const auto out = [&](std::int64_t size) { return (size - 1) / stride + 1; };
        require(
            out(now_.shape.height) == body.shape.height && out(now_.shape.width) == body.shape.width,
            fmt::format("its body makes ({}, {}, {}) of ({}, {}, {}), which no convolution with a kernel of 1 does: "
                        "height and width must stay, or be divided by a stride; padding: same, or a stride with a "
                        "padding of half the kernel would",
                        body.shape.height, body.shape.width, body.shape.channels, now_.shape.height, now_.shape.width,
                        now_.shape.channels));
        push_convolution({.channels_out = body.shape.channels, .kernel = 1, .stride = stride}, module);
    }

    void check_end() const {
        if (graph_.plan().nodes.empty()) {
            throw ModelError(layer_, "model: has no layer; the least is flatten and linear: {units: classes}");
        }
        require(now_.shape == SampleShape{1, 1, classes_},
                fmt::format(
                    "the last layer gives {} numbers ({} x {} x {}), but {} are needed, one for each class or target; "
                    "end with flatten and linear: {{units: classes}}",
                    now_.shape.size(), now_.shape.height, now_.shape.width, now_.shape.channels, classes_));
        require(last_activation_ == backend::Activation::none,
                fmt::format("the last layer's activation is {}; it must be none, since the loss takes logits",
                            word(last_activation_)));
        require(!graph_.plan().tensors.empty(), "the model has no weights to train; add a conv or a linear layer");
    }

    std::int64_t classes_;
    backend::Activation last_activation_ = backend::Activation::none;
    std::uint32_t dropouts_ = 0;
};

constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));

bool has_fewer_parameters(const Node& a, const Node& b) {
    return a.parameters < b.parameters;
}

/// Returns how many samples a block of the batch should have. `sample` is the plan of one sample. Every block reads all
/// weights and adds to all their gradients, so its activations must be much larger than the weights. A block is at most
/// the share of a replica, and at most half of the batch. In the last blocks, the places without a sample are at most a
/// sixteenth of the batch.
std::int64_t block_of(const ModelPlan& sample, std::int64_t batch, backend::Blocks blocks) {
    // The statistics of batch normalisation are those of the whole batch.
    const auto needs_batch = [](const Node& node) {
        return std::holds_alternative<backend::BatchNormShape>(node.operation);
    };
    if (blocks.bytes == 0 || std::any_of(sample.nodes.begin(), sample.nodes.end(), needs_batch)) {
        return batch;
    }
    constexpr std::int64_t activations_per_parameter = 6;
    const auto samples_with = [&](std::int64_t floats) {
        return (floats + sample.activations - 1) / sample.activations;
    };
    const std::int64_t most = blocks.replicas > 1 ? (batch + blocks.replicas - 1) / blocks.replicas : batch / 2;
    std::int64_t least =
        samples_with(std::max(blocks.bytes / float_bytes, activations_per_parameter * sample.parameters));
    if (blocks.replicas > 1) {
        least = std::min(least, std::max(most, samples_with(sample.parameters)));
    }
    std::int64_t best = batch;
    std::int64_t least_unused = batch / 16 + 1;
    for (std::int64_t block = least; block < 4 * least && block <= most; ++block) {
        const std::int64_t of_replicas = blocks.replicas * block;
        const std::int64_t unused = (of_replicas - batch % of_replicas) % of_replicas;
        if (unused < least_unused) {
            best = block;
            least_unused = unused;
        }
    }
    return best;
}

}  // namespace

ModelPlan plan_model(const ModelSpec& spec, SampleShape input, std::int64_t classes, std::int64_t batch,
                     Numerics numerics, backend::Blocks blocks) {
    if (input.height < 1 || input.width < 1 || input.channels < 1 || classes < 1 || batch < 1) {
        throw ModelError(-1, fmt::format("model: an input of ({}, {}, {}) with {} classes in batches of {} is empty",
                                         input.height, input.width, input.channels, classes, batch));
    }
    const auto plan_block = [&](std::int64_t samples) {
        Planner planner(input, classes, samples, numerics);
        planner.add(spec, "model");
        return std::move(planner).finish();
    };
    const std::int64_t block = block_of(plan_block(1), batch, blocks);
    ModelPlan plan = plan_block(block);
    plan.batch = batch;
    std::int64_t floats = plan.blocks() * block * classes;  // the logits of the batch
    if (plan.blocks() > 1) {
        plan.replicas = blocks.replicas;
        // Each replica has activations, gradients, and weights packed three times, and adds gradients in scratch
        // memory.
        floats +=
            (plan.replicas - 1) * (plan.activations + 4 * plan.parameters) +
            plan.replicas * std::max_element(plan.nodes.begin(), plan.nodes.end(), has_fewer_parameters)->parameters;
    }
    plan.bytes += floats * float_bytes;
    return plan;
}

}  // namespace finch::nn
