#include "finch/nn/model.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace finch::nn {
namespace {

std::size_t unsigned_of(std::int64_t count) {
    return static_cast<std::size_t>(count);
}

std::vector<float> on_host(backend::Device& device, const backend::Buffer& buffer) {
    std::vector<float> values(buffer.size());
    if (!values.empty()) {
        device.download(buffer.data(), values);
    }
    return values;
}

void enter(const backend::Pass& pass, backend::Activity activity, std::size_t node) {
    if (pass.timer != nullptr) {
        pass.timer->enter({activity, static_cast<std::int32_t>(node)});
    }
}

}  // namespace

std::int64_t memory_bytes(backend::Device& device, const ModelPlan& plan) {
    std::int64_t scratch = 0;
    for (const Node& node : plan.nodes) {
        scratch = std::max(scratch, device.scratch_bytes(node.operation));
    }
    return plan.bytes + scratch;
}

Weights::Weights(backend::Device& device, const ModelPlan& plan)
    : device_(device),
      parameters_(device.allocate(unsigned_of(plan.parameters))),
      buffers_(plan.buffers > 0 ? device.allocate(unsigned_of(plan.buffers)) : backend::Buffer()) {}

ModelState Weights::state() const {
    return {.parameters = on_host(device_, parameters_), .buffers = on_host(device_, buffers_)};
}

void Weights::set_state(const ModelState& state) {
    device_.upload(state.parameters, parameters_.data());
    if (buffers_.size() > 0) {
        device_.upload(state.buffers, buffers_.data());
    }
}

Model::Model(backend::Device& device, ModelPlan plan)
    : device_(device),
      plan_(std::move(plan)),
      weights_(device, plan_),
      grads_(device.allocate(unsigned_of(plan_.parameters))),
      activations_(device.allocate(unsigned_of(plan_.activations))) {
    for (const Node& node : plan_.nodes) {
        operations_.push_back(device.make(node.operation));
    }
}

void Model::pack(const Weights& weights) {
    for (std::size_t i = 0; i < operations_.size(); ++i) {
        const Node& node = plan_.nodes[i];
        if (node.parameters > 0) {
            operations_[i]->pack(weights.parameters().data() + node.parameters_offset,
                                 weights.buffers().data() + node.buffers_offset);
        }
    }
}

void Model::forward(const backend::Pass& pass) {
    for (std::size_t i = 0; i < operations_.size(); ++i) {
        const Node& node = plan_.nodes[i];
        inputs_.clear();
        for (const std::size_t input : node.inputs) {
            inputs_.push_back(at(plan_.values[input].offset));
        }
        enter(pass, backend::Activity::forward, i);
        operations_[i]->forward(pass, inputs_, at(plan_.values[node.output].offset));
    }
}

void Model::backward(const backend::Pass& pass,
                     const std::function<void(std::int64_t begin, std::int64_t end)>& ready) {
    for (std::size_t i = operations_.size(); i-- > 0;) {
        const Node& node = plan_.nodes[i];
        if (!node.has_backward) {
            continue;
        }
        inputs_.clear();
        grad_inputs_.clear();
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
            inputs_.push_back(at(plan_.values[node.inputs[k]].offset));
            grad_inputs_.push_back(node.grad_inputs[k].is_needed ? at(node.grad_inputs[k].offset) : nullptr);
        }
        enter(pass, backend::Activity::backward, i);
        operations_[i]->backward(pass, inputs_, at(plan_.values[node.output].offset), at(node.grad_output),
                                 grad_inputs_, grads_.data() + node.parameters_offset);
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
            if (const InputGrad& grad = node.grad_inputs[k]; grad.is_needed && grad.add_to >= 0) {
                device_.accumulate(at(grad.offset), at(grad.add_to),
                                   unsigned_of(plan_.batch * plan_.values[node.inputs[k]].shape.size()));
            }
        }
        if (node.parameters > 0) {
            ready(node.parameters_offset, node.parameters_offset + node.parameters);
        }
    }
}

void Model::set_state(const ModelState& state) {
    weights_.set_state(state);
    pack();
}

}  // namespace finch::nn
