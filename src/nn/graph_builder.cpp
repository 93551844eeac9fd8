#include "graph_builder.hpp"

#include <algorithm>
#include <utility>

namespace finch::nn {
namespace {

/// Sets the numerical options of an operation. The first layer with weights needs no gradient of its input, because no
/// layer before it has parameters.
void set_numerics(auto& shape, Numerics numerics, bool needs_input_grad) {
    if constexpr (requires { shape.precision; }) {
        shape.precision = numerics.precision;
    }
    if constexpr (requires { shape.deterministic; }) {
        shape.deterministic = numerics.deterministic;
    }
    if constexpr (requires { shape.needs_input_grad; }) {
        shape.needs_input_grad = needs_input_grad;
    }
}

}  // namespace

GraphBuilder::GraphBuilder(SampleShape input, std::int64_t classes, std::int64_t batch, Numerics numerics)
    : numerics_(numerics) {
    plan_.input = input;
    plan_.classes = classes;
    plan_.batch = plan_.block = batch;
    plan_.values.push_back({input});
    learns_before_.push_back(false);
}

void GraphBuilder::add_tensor(TensorInfo tensor) {
    tensor.size = 1;
    for (const std::int64_t axis : tensor.shape) {
        tensor.size *= axis;
    }
    tensor.offset = tensor.learns ? new_parameters_ : plan_.buffers + new_buffers_;
    (tensor.learns ? new_parameters_ : new_buffers_) += tensor.size;
    tensor_nodes_.push_back(plan_.nodes.size());
    plan_.tensors.push_back(std::move(tensor));
}

std::size_t GraphBuilder::push(backend::OperationShape operation, SampleShape out, std::vector<std::size_t> inputs) {
    Node node;
    node.inputs = std::move(inputs);
    node.output = plan_.values.size();
    node.parameters = std::exchange(new_parameters_, 0);
    node.buffers_offset = plan_.buffers;
    node.buffers = std::exchange(new_buffers_, 0);
    bool before = false;
    for (const std::size_t input : node.inputs) {
        node.grad_inputs.push_back({.is_needed = learns_before_[input]});
        before = before || learns_before_[input];
    }
    std::visit([&](auto& shape) { set_numerics(shape, numerics_, before); }, operation);
    node.operation = operation;
    node.has_backward = node.parameters > 0 || before;
    plan_.buffers += node.buffers;
    learns_before_.push_back(node.has_backward);
    plan_.values.push_back({out});
    plan_.nodes.push_back(std::move(node));
    return plan_.nodes.back().output;
}

ModelPlan GraphBuilder::finish() && {
    place_parameters();
    place_activations(plan_);
    count_bytes();
    return std::move(plan_);
}

void GraphBuilder::place_parameters() {
    for (auto node = plan_.nodes.rbegin(); node != plan_.nodes.rend(); ++node) {
        node->parameters_offset = plan_.parameters;
        plan_.parameters += node->parameters;
    }
    for (std::size_t i = 0; i < plan_.tensors.size(); ++i) {
        TensorInfo& tensor = plan_.tensors[i];
        tensor.offset += tensor.learns ? plan_.nodes[tensor_nodes_[i]].parameters_offset : 0;
    }
}

/// Counts the bytes of a training and of a snapshot. A training has arenas of parameters, gradients, two optimizer
/// states, a copy of the best epoch, and weights packed for forward and for the weight gradient. Nodes with an input
/// gradient also pack their weights for the input gradient. Further bytes are for activations and for data that
/// operations save for backward. A snapshot has weights, best weights and optimizer states, as arrays and as the bytes
/// of a file.
void GraphBuilder::count_bytes() {
    constexpr std::int64_t arenas = 7;
    constexpr std::int64_t snapshot_arenas = 8;
    std::int64_t floats = arenas * plan_.parameters + 2 * plan_.buffers + plan_.activations;
    for (const Node& node : plan_.nodes) {
        const bool packs = std::any_of(node.grad_inputs.begin(), node.grad_inputs.end(),
                                       [](const InputGrad& grad) { return grad.is_needed; });
        floats += backend::saved_floats(node.operation) + (packs ? node.parameters : 0);
    }
    plan_.bytes = floats * static_cast<std::int64_t>(sizeof(float));
    plan_.snapshot_bytes =
        (snapshot_arenas * plan_.parameters + 4 * plan_.buffers) * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace finch::nn
