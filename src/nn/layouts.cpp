#include "finch/nn/model.hpp"

#include "graph_builder.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

namespace finch::nn {
namespace {

/// Returns the convolution of a node that the device prefers in planes, or null.
backend::ConvolutionShape* planes_convolution(const backend::Device& device, Node& node) {
    auto* const shape = std::get_if<backend::ConvolutionShape>(&node.operation);
    return shape != nullptr && device.prefers_planes(*shape) ? shape : nullptr;
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
    bool has_planes = false;
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
            has_planes = true;
        }
    }
    if (has_planes) {
        const std::int64_t before = std::exchange(plan.activations, 0);
        place_activations(plan);
        plan.bytes += plan.replicas * (plan.activations - before) * static_cast<std::int64_t>(sizeof(float));
    }
    return plan;
}

}  // namespace finch::nn
