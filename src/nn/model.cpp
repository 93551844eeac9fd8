#include "finch/nn/model.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace finch::nn {
namespace {

/// With other ranks, gradients of so many floats are finished at once: as many as their first sum has
/// (train/buckets.hpp).
constexpr std::int64_t most_deferred = 1 << 15;

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
    const ModelPlan in_layouts = with_layouts(device, plan);
    std::int64_t scratch = 0;
    std::int64_t kept = 0;
    for (const Node& node : in_layouts.nodes) {
        scratch = std::max(scratch, device.scratch_bytes(node.operation));
        kept += device.kept_bytes(node.operation);
    }
    return in_layouts.bytes + device.blocks().replicas * (scratch + kept);
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
      logits_(device.allocate(unsigned_of(plan_.blocks() * plan_.block * plan_.classes))),
      replicas_(unsigned_of(plan_.replicas)) {
    for_replicas([this](std::int64_t number, Replica& replica) { make(number, replica); });
}

void Model::make(std::int64_t number, Replica& replica) {
    if (plan_.replicas > 1) {
        replica.device = device_.replica(number);
    }
    backend::Device& device = replica.device ? *replica.device : device_;
    for (const Node& node : plan_.nodes) {
        replica.operations.push_back(device.make(node.operation));
    }
    replica.activations = device.allocate(unsigned_of(plan_.activations));
    if (number > 0) {
        replica.own_grads = device.allocate(grads_.size());
    }
    replica.grads = number > 0 ? replica.own_grads.span() : grads_.span();
    replica.logits = logits_.data();
}

/// Calls `work(number, replica)` for each replica concurrently. A single replica may use all threads of the device.
template <class Work>
void Model::for_replicas(Work work) {
    if (plan_.replicas == 1) {
        work(std::int64_t{0}, replicas_.front());
    } else {
        device_.run_replicas(plan_.replicas,
                             [&](std::int64_t number) { work(number, replicas_[unsigned_of(number)]); });
    }
}

void Model::pack(const Weights& weights) {
    for_replicas([&](std::int64_t /*number*/, Replica& replica) {
        for (std::size_t i = 0; i < replica.operations.size(); ++i) {
            const Node& node = plan_.nodes[i];
            if (node.parameters > 0) {
                replica.operations[i]->pack(weights.parameters().data() + node.parameters_offset,
                                            weights.buffers().data() + node.buffers_offset);
            }
        }
    });
    device_.finish_deferred();
}

/// Calls `work(replica, pass of the block)` for each block of the batch, with the block's images as the input. Replica
/// i computes the blocks i, i + replicas, i + 2 replicas, … Only replica 0 is measured.
template <class Work>
void Model::for_blocks(const backend::Pass& pass, Work work) {
    const std::int64_t blocks = plan_.blocks();
    std::vector<std::unique_ptr<backend::StepContext>> steps;
    for (std::int64_t block = 0; blocks > 1 && block < blocks; ++block) {
        steps.push_back(pass.step.block(block * plan_.block, plan_.block));
    }
    for_replicas([&](std::int64_t number, Replica& replica) {
        for (std::int64_t block = number; block < blocks; block += plan_.replicas) {
            const backend::Pass of_block{.step = blocks > 1 ? *steps[unsigned_of(block)] : pass.step,
                                         .mode = pass.mode,
                                         .group = pass.group,
                                         .timer = number == 0 ? pass.timer : nullptr,
                                         .is_first_block = block < plan_.replicas,
                                         .is_last_block = block + plan_.replicas >= blocks};
            if (!of_block.is_first_block) {
                enter(of_block, backend::Activity::data);
            }
            device_.load_batch(of_block.step, replica.at(plan_.values.front().offset));
            replica.logits = logits_.data() + block * plan_.block * plan_.classes;
            enter(of_block, backend::Activity::forward);
            work(replica, of_block);
        }
    });
    if (blocks > 1) {
        backend::LossSums sums = pass.step.sums();
        for (const auto& step : steps) {
            sums += step->sums();
        }
        pass.step.set_sums(sums);
    }
}

void Model::evaluate(const backend::Pass& pass, const AddLosses& add_losses) {
    for_blocks(pass, [&](Replica& replica, const backend::Pass& block) {
        forward(replica, block);
        add_losses(block.step, replica.logits, nullptr);
    });
}

void Model::compute_grads(const backend::Pass& pass, const AddLosses& add_losses, const Ready& ready) {
    for_blocks(pass, [&](Replica& replica, const backend::Pass& block) {
        forward(replica, block);
        enter(block, backend::Activity::forward);
        add_losses(block.step, replica.logits, replica.at(plan_.grad_logits));
        enter(block, backend::Activity::backward);
        backward(replica, block, plan_.replicas > 1 ? [](std::int64_t, std::int64_t) {} : ready);
    });
    if (plan_.replicas > 1) {
        add_replicas(ready);
    }
}

/// Adds the gradients of all replicas in their order.
void Model::add_replicas(const Ready& ready) {
    for_replicas([&](std::int64_t number, Replica& /*replica*/) {
        const std::int64_t begin = plan_.parameters * number / plan_.replicas;
        const std::int64_t end = plan_.parameters * (number + 1) / plan_.replicas;
        for (std::size_t other = 1; other < replicas_.size(); ++other) {
            device_.accumulate(replicas_[other].grads.data() + begin, grads_.data() + begin, unsigned_of(end - begin));
        }
    });
    ready(0, plan_.parameters);
}

/// Returns the buffer of a value of the present block.
float* Model::value(const Replica& replica, std::size_t index) const noexcept {
    return index + 1 == plan_.values.size() ? replica.logits : replica.at(plan_.values[index].offset);
}

void Model::forward(Replica& replica, const backend::Pass& pass) {
    for (std::size_t i = 0; i < replica.operations.size(); ++i) {
        const Node& node = plan_.nodes[i];
        replica.inputs.clear();
        for (const std::size_t input : node.inputs) {
            replica.inputs.push_back(value(replica, input));
        }
        enter(pass, backend::Activity::forward, static_cast<std::int32_t>(i));
        replica.operations[i]->forward(pass, replica.inputs, value(replica, node.output));
    }
}

void Model::backward(Replica& replica, const backend::Pass& pass, const Ready& ready) {
    std::int64_t announced = 0;
    std::int64_t computed = 0;
    const auto announce = [&] {
        device_.finish_deferred();
        if (computed > announced) {
            ready(std::exchange(announced, computed), computed);
        }
    };
    for (std::size_t i = replica.operations.size(); i-- > 0;) {
        const Node& node = plan_.nodes[i];
        if (!node.has_backward) {
            continue;
        }
        // Other ranks wait for gradients. Without other ranks, all gradients can be finished together.
        const bool finishes = pass.group != nullptr && node.parameters > 0;
        const bool defers = replica.operations[i]->defers_grads();
        if (finishes && !defers) {
            announce();  // before the sums over the ranks that this operation may need
        }
        replica.inputs.clear();
        replica.grad_inputs.clear();
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
            replica.inputs.push_back(value(replica, node.inputs[k]));
            replica.grad_inputs.push_back(node.grad_inputs[k].is_needed ? replica.at(node.grad_inputs[k].offset)
                                                                        : nullptr);
        }
        enter(pass, backend::Activity::backward, static_cast<std::int32_t>(i));
        replica.operations[i]->backward(pass, replica.inputs, value(replica, node.output), replica.at(node.grad_output),
                                        replica.grad_inputs, replica.grads.data() + node.parameters_offset);
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
            if (const InputGrad& grad = node.grad_inputs[k]; grad.is_needed && grad.add_to >= 0) {
                const Value& input = plan_.values[node.inputs[k]];
                device_.accumulate(replica.at(grad.offset), replica.at(grad.add_to),
                                   unsigned_of(input.elements(plan_.block)), input.type);
            }
        }
        if (node.parameters > 0 && pass.is_last_block) {
            computed = node.parameters_offset + node.parameters;
        }
        if (finishes && (!defers || computed - announced >= most_deferred)) {
            announce();
        }
    }
    announce();
}

void Model::set_state(const ModelState& state) {
    weights_.set_state(state);
    pack();
}

}  // namespace finch::nn
