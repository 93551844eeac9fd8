#include "finch/nn/model.hpp"

#include "graph_builder.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

namespace finch::nn {
namespace {

using backend::TensorType;
constexpr TensorType float32 = TensorType::float32;
constexpr TensorType bfloat16 = TensorType::bfloat16;

/// Returns the convolution of a node that the device prefers in planes, or null.
backend::ConvolutionShape* planes_convolution(const backend::Device& device, Node& node) {
    auto* const shape = std::get_if<backend::ConvolutionShape>(&node.operation);
    return shape != nullptr && device.prefers_planes(*shape) ? shape : nullptr;
}

bool has_types(const backend::OperationShape& operation) {
    return std::visit(
        [](const auto& shape) {
            return requires {
                shape.x_type;
            };
        },
        operation);
}

/// Sets the types of an operation's tensors. Does nothing if the operation supports only float32.
void set_types(backend::OperationShape& operation, TensorType x, TensorType y) {
    std::visit(
        [&](auto& shape) {
            if constexpr (requires { shape.x_type; }) {
                shape.x_type = x;
                shape.y_type = y;
            }
        },
        operation);
}

/// Sets the types of a node's tensors. Prefers bfloat16, but only for tensors that are bfloat16 in `types`. A tensor
/// that becomes float32 becomes float32 in `types` too. Returns true if `types` changed.
bool choose_types(const backend::Device& device, Node& node, std::vector<TensorType>& types) {
    const auto is_bfloat16 = [&](std::size_t value) { return types[value] == bfloat16; };
    const bool x_may_be = std::all_of(node.inputs.begin(), node.inputs.end(), is_bfloat16);
    const bool y_may_be = is_bfloat16(node.output);
    const std::array<std::pair<bool, bool>, 4> best_first{{{true, true}, {true, false}, {false, true}, {false, false}}};
    for (const auto& [x, y] : best_first) {
        if ((x && !x_may_be) || (y && !y_may_be)) {
            continue;
        }
        set_types(node.operation, x ? bfloat16 : float32, y ? bfloat16 : float32);
        if ((!x && !y) || (has_types(node.operation) && device.supports_types(node.operation))) {
            bool changed = y_may_be && !y;
            types[node.output] = y ? bfloat16 : float32;
            for (const std::size_t input : node.inputs) {
                changed = changed || (is_bfloat16(input) && !x);
                types[input] = x ? bfloat16 : float32;
            }
            return changed;
        }
    }
    return false;
}

bool multiplies_bfloat16(const Node& node) {
    const auto* const shape = std::get_if<backend::ConvolutionShape>(&node.operation);
    return shape != nullptr && shape->precision == backend::Precision::bfloat16;
}
bool is_convolution_of_bfloat16(const Node& node) {
    const auto* const shape = std::get_if<backend::ConvolutionShape>(&node.operation);
    return shape != nullptr && (shape->x_type == bfloat16 || shape->y_type == bfloat16);
}

/// Stores a value as bfloat16 if the device supports this for the operation that writes it and for all that read it.
/// The input of the model and the logits are float32. If no convolution does, all values stay float32.
/// Returns true if a value is bfloat16.
bool store_bfloat16(const backend::Device& device, ModelPlan& plan) {
    if (std::none_of(plan.nodes.begin(), plan.nodes.end(), multiplies_bfloat16)) {
        return false;
    }
    std::vector<TensorType> types(plan.values.size(), bfloat16);
    types.front() = types.back() = float32;
    for (bool changed = true; changed;) {
        changed = false;
        for (Node& node : plan.nodes) {
            changed = choose_types(device, node, types) || changed;
        }
    }
    if (std::none_of(plan.nodes.begin(), plan.nodes.end(), is_convolution_of_bfloat16)) {
        for (Node& node : plan.nodes) {  // rounding would save no copy
            set_types(node.operation, float32, float32);
        }
        return false;
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
        plan.values[i].type = types[i];
    }
    return true;
}

/// A convolution that writes bfloat16 for a batch normalisation alone leaves its bias to the normalisation: cuDNN has
/// no engine that adds a bias in bfloat16, so another kernel would have to read and write all activations.
void move_biases(ModelPlan& plan, const std::vector<std::size_t>& readers) {
    for (Node& node : plan.nodes) {
        auto* const norm = std::get_if<backend::BatchNormShape>(&node.operation);
        const std::size_t value = node.inputs.front();
        if (norm == nullptr || norm->x_type != bfloat16 || value == 0 || readers[value] != 1) {
            continue;
        }
        Node& before = plan.nodes[value - 1];
        auto* const convolution = std::get_if<backend::ConvolutionShape>(&before.operation);
        if (convolution != nullptr && convolution->activation == backend::Activation::none) {
            convolution->skips_bias = true;
            norm->skipped_bias_offset = before.parameters_offset + convolution->weights() - node.parameters_offset;
        }
    }
}

}  // namespace

/// A value is in planes if a convolution writes it, one convolution alone reads it, and the device prefers planes for
/// both. Relu keeps the zeros of the padding; other activations do not.
ModelPlan with_layouts(const backend::Device& device, ModelPlan plan) {
    std::vector<std::size_t> readers(plan.values.size());
    for (const Node& node : plan.nodes) {
        for (const std::size_t input : node.inputs) {
            ++readers[input];
        }
    }
    bool has_changed = store_bfloat16(device, plan);
    move_biases(plan, readers);
    for (Node& reader : plan.nodes) {
        const std::size_t value = reader.inputs.front();
        if (value == 0 || readers[value] != 1) {
            continue;
        }
        backend::ConvolutionShape* const to = planes_convolution(device, reader);
        backend::ConvolutionShape* const from = planes_convolution(device, plan.nodes[value - 1]);
        if (to != nullptr && from != nullptr &&
            (from->activation == backend::Activation::none || from->activation == backend::Activation::relu)) {
            from->y_layout = to->x_layout = plan.values[value].layout = backend::Layout::planes;
            has_changed = true;
        }
    }
    if (has_changed) {
        const std::int64_t before = std::exchange(plan.activations, 0);
        place_activations(plan);
        plan.bytes += plan.replicas * (plan.activations - before) * static_cast<std::int64_t>(sizeof(float));
    }
    return plan;
}

}  // namespace finch::nn
