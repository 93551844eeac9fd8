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

void enter(const backend::Pass& pass, backend::Activity activity, std::int32_t node = -1) {
    if (pass.timer != nullptr) {
        pass.timer->enter({activity, node});
    }
}

}  // namespace

std::int64_t memory_bytes(backend::Device& device, const ModelPlan& plan) {
    std::int64_t scratch = 0;
    for (const Node& node : plan.nodes) {
        scratch = std::max(scratch, device.scratch_bytes(node.operation));
    }
    return with_layouts(device, plan).bytes + scratch;
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
      plan_(with_layouts(device, std::move(plan))),
      weights_(device, plan_),
      grads_(device.allocate(unsigned_of(plan_.parameters))),
      activations_(device.allocate(unsigned_of(plan_.activations))),
      logits_(device.allocate(unsigned_of(plan_.blocks() * plan_.block * plan_.classes))) {
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

/// Calls `work(pass of the block)` for each block of the batch, with the block's images as the input.
template <class Work>
void Model::for_blocks(const backend::Pass& pass, Work work) {
    for (std::int64_t block = 0; block < plan_.blocks(); ++block) {
        first_row_ = block * plan_.block;
        if (plan_.blocks() > 1) {
            pass.step.select(first_row_, plan_.block);
        }
        enter(pass, backend::Activity::data);
        device_.load_batch(pass.step, input());
        enter(pass, backend::Activity::forward);
        backend::Pass of_block = pass;
        of_block.is_first_block = block == 0;
        of_block.is_last_block = block + 1 == plan_.blocks();
        work(of_block);
    }
    first_row_ = 0;
}

void Model::evaluate(const backend::Pass& pass, const AddLosses& add_losses) {
    for_blocks(pass, [&](const backend::Pass& block) {
        forward(block);
        add_losses(value(plan_.values.size() - 1), nullptr);
    });
}

void Model::compute_grads(const backend::Pass& pass, const AddLosses& add_losses, const Ready& ready) {
    for_blocks(pass, [&](const backend::Pass& block) {
        forward(block);
        enter(pass, backend::Activity::forward);
        add_losses(value(plan_.values.size() - 1), grad_logits());
        enter(pass, backend::Activity::backward);
        backward(block, ready);
    });
}

/// Returns the buffer of a value of the present block.
float* Model::value(std::size_t index) const noexcept {
    const bool is_logits = index + 1 == plan_.values.size();
    return is_logits ? logits_.data() + first_row_ * plan_.classes : at(plan_.values[index].offset);
}

void Model::forward(const backend::Pass& pass) {
    for (std::size_t i = 0; i < operations_.size(); ++i) {
        const Node& node = plan_.nodes[i];
        inputs_.clear();
        for (const std::size_t input : node.inputs) {
            inputs_.push_back(value(input));
        }
        enter(pass, backend::Activity::forward, static_cast<std::int32_t>(i));
        operations_[i]->forward(pass, inputs_, value(node.output));
    }
}

void Model::backward(const backend::Pass& pass, const Ready& ready) {
    for (std::size_t i = operations_.size(); i-- > 0;) {
        const Node& node = plan_.nodes[i];
        if (!node.has_backward) {
            continue;
        }
        inputs_.clear();
        grad_inputs_.clear();
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
            inputs_.push_back(value(node.inputs[k]));
            grad_inputs_.push_back(node.grad_inputs[k].is_needed ? at(node.grad_inputs[k].offset) : nullptr);
        }
        enter(pass, backend::Activity::backward, static_cast<std::int32_t>(i));
        operations_[i]->backward(pass, inputs_, value(node.output), at(node.grad_output), grad_inputs_,
                                 grads_.data() + node.parameters_offset);
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
            if (const InputGrad& grad = node.grad_inputs[k]; grad.is_needed && grad.add_to >= 0) {
                device_.accumulate(at(grad.offset), at(grad.add_to),
                                   unsigned_of(plan_.block * plan_.values[node.inputs[k]].floats()));
            }
        }
        if (node.parameters > 0 && pass.is_last_block) {
            ready(node.parameters_offset, node.parameters_offset + node.parameters);
        }
    }
}

void Model::set_state(const ModelState& state) {
    weights_.set_state(state);
    pack();
}

}  // namespace finch::nn
