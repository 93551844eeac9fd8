#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/nn/spec.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace finch::nn {
namespace {

/// More floats than any device has: a product of shapes beyond this is refused before it can overflow.
constexpr double float_limit = 1e13;

std::string activation_name(backend::Activation activation) {
    switch (activation) {
        case backend::Activation::relu:
            return "relu";
        case backend::Activation::sigmoid:
            return "sigmoid";
        case backend::Activation::tanh:
            return "tanh";
        case backend::Activation::none:
            break;
    }
    return "activation";
}

std::string kind_name(const ConvLayer& /*layer*/) {
    return "conv";
}
std::string kind_name(const PoolLayer& layer) {
    return layer.kind == backend::Pooling::max ? "max_pool" : "average_pool";
}
std::string kind_name(const FlattenLayer& /*layer*/) {
    return "flatten";
}
std::string kind_name(const LinearLayer& /*layer*/) {
    return "linear";
}
std::string kind_name(const ActivationLayer& layer) {
    return activation_name(layer.activation);
}

template <class AnyLayer>
std::int64_t repetitions(const AnyLayer& layer) {
    if constexpr (requires { layer.repeat; }) {
        return layer.repeat;
    } else {
        return 1;
    }
}

bool needs_input_grad(const PlannedLayer& layer) {
    return std::visit(
        [](const auto& shape) {
            if constexpr (requires { shape.needs_input_grad; }) {
                return shape.needs_input_grad;
            } else {
                return false;
            }
        },
        layer.shape);
}

template <class AnyLayer>
backend::Activation fused_activation(const AnyLayer& layer) {
    if constexpr (requires { layer.activation; }) {
        return layer.activation;
    } else {
        return backend::Activation::none;
    }
}

/// Walks through the layers in forward order and keeps the shape that the next one sees.
class Planner {
public:
    Planner(SampleShape input, std::int64_t classes, std::int64_t batch) : shape_(input) {
        plan_.input = input;
        plan_.classes = classes;
        plan_.batch = batch;
        check_size(shape_.size());
    }

    void add(const Layer& layer, std::size_t index) {
        std::visit(
            [&](const auto& known) {
                const std::int64_t count = repetitions(known);
                if (count == 0) {
                    return;
                }
                place_ = fmt::format("model[{}] ({})", index, kind_name(known));
                require_at_least(0, count, "repeat");
                for (std::int64_t i = 0; i < count; ++i) {
                    append(known);
                    last_activation_ = fused_activation(known);
                }
            },
            layer);
    }

    ModelPlan finish() && {
        check_end();
        lay_out_arenas();
        skip_unneeded_input_grads();
        count_bytes();
        return std::move(plan_);
    }

private:
    void require(bool holds, const std::string& problem) const {
        if (!holds) {
            throw ConfigError(place_ + ": " + problem);
        }
    }
    void require_at_least(std::int64_t least, std::int64_t value, const char* what) const {
        require(value >= least, fmt::format("{} is {}; it must be at least {}", what, value, least));
    }
    /// `floats` per sample.
    void check_size(std::int64_t floats) const {
        require(static_cast<double>(floats) * static_cast<double>(plan_.batch) <= float_limit,
                "the layer's output is larger than any memory");
    }
    void require_image(const char* what) const {
        require(!flat_, fmt::format("a {} needs (height, width, channels), but a flatten stands before it; put it "
                                    "before the flatten",
                                    what));
    }
    void require_fit(std::int64_t kernel, std::int64_t padding) const {
        require(kernel <= shape_.height + padding && kernel <= shape_.width + padding,
                fmt::format("kernel {} does not fit into its input of {} x {} with {} of padding in all; a smaller "
                            "kernel, more padding or fewer layers that shrink the image before it would",
                            kernel, shape_.height, shape_.width, padding));
    }

    void append(const ConvLayer& layer) {
        require_image("conv");
        require_at_least(1, layer.channels, "channels");
        require_at_least(1, layer.kernel, "kernel");
        require_at_least(1, layer.stride, "stride");
        require_at_least(0, layer.padding.value_or(0), "padding");
        require(layer.padding || layer.stride == 1,
                fmt::format("padding `same` needs stride 1, but stride is {}; give padding a number", layer.stride));
        const std::int64_t before = layer.padding.value_or((layer.kernel - 1) / 2);
        const std::int64_t after = layer.padding.value_or(layer.kernel - 1 - before);
        require_fit(layer.kernel, before + after);
        backend::ConvolutionShape shape{.batch = plan_.batch,
                                        .height = shape_.height,
                                        .width = shape_.width,
                                        .channels_in = shape_.channels,
                                        .channels_out = layer.channels,
                                        .kernel = layer.kernel,
                                        .stride = layer.stride,
                                        .padding_before = before,
                                        .padding_after = after,
                                        .activation = layer.activation};
        const std::int64_t fan_in = shape_.channels * layer.kernel * layer.kernel;
        add_tensors({layer.channels, shape_.channels, layer.kernel, layer.kernel}, layer.channels, fan_in);
        push(shape, {shape.height_out(), shape.width_out(), layer.channels});
        count_modules(layer.activation);
    }

    void append(const PoolLayer& layer) {
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
                                    .batch = plan_.batch,
                                    .height = shape_.height,
                                    .width = shape_.width,
                                    .channels = shape_.channels,
                                    .kernel = layer.kernel,
                                    .stride = stride,
                                    .padding = layer.padding};
        push(shape, {shape.height_out(), shape.width_out(), shape_.channels});
        count_modules(backend::Activation::none);
    }

    /// Nothing happens in memory: the linear layer behind it takes NHWC and keeps its columns in CHW order.
    void append(const FlattenLayer& /*layer*/) {
        flat_ = true;
        count_modules(backend::Activation::none);
    }

    void append(const LinearLayer& layer) {
        require(flat_ || (shape_.height == 1 && shape_.width == 1),
                fmt::format("its input is ({}, {}, {}), not a list of features; put a flatten before it", shape_.height,
                            shape_.width, shape_.channels));
        require_at_least(0, layer.units, "units");
        const std::int64_t units = layer.units == 0 ? plan_.classes : layer.units;
        const backend::LinearShape shape{.batch = plan_.batch,
                                         .height = shape_.height,
                                         .width = shape_.width,
                                         .channels = shape_.channels,
                                         .units = units,
                                         .activation = layer.activation};
        add_tensors({units, shape_.size()}, units, shape_.size());
        push(shape, {1, 1, units});
        count_modules(layer.activation);
    }

    void append(const ActivationLayer& layer) {
        if (layer.activation == backend::Activation::none) {
            return;
        }
        push(backend::ActivationShape{.count = plan_.batch * shape_.size(), .activation = layer.activation}, shape_);
        count_modules(backend::Activation::none);
    }

    template <class Shape>
    void push(const Shape& shape, SampleShape out) {
        require(static_cast<double>(out.height) * static_cast<double>(out.width) * static_cast<double>(out.channels) *
                        static_cast<double>(plan_.batch) <=
                    float_limit,
                "its output is larger than any memory");
        plan_.layers.push_back({.shape = shape, .in = shape_, .out = out, .parameters = new_parameters_});
        new_parameters_ = 0;
        shape_ = out;
    }

    /// The layer's weight and bias; their offsets follow when all layers are known.
    void add_tensors(std::vector<std::int64_t> weight_shape, std::int64_t bias, std::int64_t fan_in) {
        require(static_cast<double>(fan_in) * static_cast<double>(bias) <= float_limit,
                "its weights are larger than any memory");
        const std::string module = fmt::format("{}", modules_);
        plan_.tensors.push_back(
            {.name = module + ".weight", .shape = std::move(weight_shape), .size = bias * fan_in, .fan_in = fan_in});
        plan_.tensors.push_back({.name = module + ".bias", .shape = {bias}, .size = bias, .fan_in = fan_in});
        new_parameters_ = bias * fan_in + bias;
    }

    /// nn.Sequential counts an activation as a module of its own.
    void count_modules(backend::Activation activation) { modules_ += activation == backend::Activation::none ? 1 : 2; }

    void check_end() const {
        if (plan_.layers.empty()) {
            throw ConfigError("model: has no layer; the least is flatten and linear: {units: classes}");
        }
        require(shape_ == SampleShape{1, 1, plan_.classes},
                fmt::format("the last layer gives ({}, {}, {}), but one number for each of {} classes is needed, "
                            "(1, 1, {}); end with flatten and linear: {{units: classes}}",
                            shape_.height, shape_.width, shape_.channels, plan_.classes, plan_.classes));
        require(last_activation_ == backend::Activation::none,
                fmt::format("the last layer's activation is {}; it must be none, since the loss takes logits",
                            activation_name(last_activation_)));
        require(!plan_.tensors.empty(), "the model has no weights to train; add a conv or a linear layer");
    }

    void lay_out_arenas() {
        std::int64_t offset = 0;
        auto tensor = plan_.tensors.rbegin();
        for (auto layer = plan_.layers.rbegin(); layer != plan_.layers.rend(); ++layer) {
            layer->parameters_offset = offset;
            if (layer->parameters > 0) {
                TensorInfo& bias = *tensor++;
                TensorInfo& weight = *tensor++;
                weight.offset = offset;
                bias.offset = offset + weight.size;
            }
            offset += layer->parameters;
        }
        plan_.parameters = offset;
    }

    /// Nothing below the first layer with weights learns, so that layer computes no gradient of its input.
    void skip_unneeded_input_grads() {
        const auto first = std::find_if(plan_.layers.begin(), plan_.layers.end(),
                                        [](const PlannedLayer& layer) { return layer.parameters > 0; });
        std::visit(
            [](auto& shape) {
                if constexpr (requires { shape.needs_input_grad; }) {
                    shape.needs_input_grad = false;
                }
            },
            first->shape);
    }

    /// Arenas for parameters, gradients, two optimizer states, the best epoch's copy, and weights packed for forward
    /// and for their gradient; where a gradient of the input is needed, packed for that too. Then the input, every
    /// layer's output, which input a maximum came from, and two buffers in which the outputs' gradients take turns.
    /// A snapshot is weights, best weights and optimizer states, as arrays and as the bytes of a file.
    void count_bytes() {
        constexpr std::int64_t arenas = 7;
        constexpr std::int64_t snapshot_arenas = 8;
        std::int64_t floats = arenas * plan_.parameters + plan_.batch * plan_.input.size();
        std::int64_t largest = 0;
        for (const PlannedLayer& layer : plan_.layers) {
            const std::int64_t outputs = plan_.batch * layer.out.size();
            const auto* pooling = std::get_if<backend::PoolingShape>(&layer.shape);
            floats += pooling != nullptr && pooling->kind == backend::Pooling::max ? 2 * outputs : outputs;
            floats += needs_input_grad(layer) ? layer.parameters : 0;
            largest = std::max(largest, outputs);
        }
        plan_.bytes = (floats + 2 * largest) * static_cast<std::int64_t>(sizeof(float));
        plan_.snapshot_bytes = snapshot_arenas * plan_.parameters * static_cast<std::int64_t>(sizeof(float));
    }

    ModelPlan plan_;
    SampleShape shape_;
    std::string place_ = "model";
    backend::Activation last_activation_ = backend::Activation::none;
    std::int64_t modules_ = 0;
    std::int64_t new_parameters_ = 0;  ///< of the layer that is being appended
    bool flat_ = false;
};

void set_numerics(auto& shape, Numerics numerics) {
    if constexpr (requires { shape.precision; }) {
        shape.precision = numerics.precision;
    }
    if constexpr (requires { shape.deterministic; }) {
        shape.deterministic = numerics.deterministic;
    }
}

}  // namespace

ModelPlan plan_model(const ModelSpec& spec, SampleShape input, std::int64_t classes, std::int64_t batch,
                     Numerics numerics) {
    if (input.height < 1 || input.width < 1 || input.channels < 1 || classes < 1 || batch < 1) {
        throw ConfigError(fmt::format("model: an input of ({}, {}, {}) with {} classes in batches of {} is empty",
                                      input.height, input.width, input.channels, classes, batch));
    }
    Planner planner(input, classes, batch);
    for (std::size_t i = 0; i < spec.size(); ++i) {
        planner.add(spec[i], i);
    }
    ModelPlan plan = std::move(planner).finish();
    for (PlannedLayer& layer : plan.layers) {
        std::visit([&](auto& shape) { set_numerics(shape, numerics); }, layer.shape);
    }
    return plan;
}

}  // namespace finch::nn
