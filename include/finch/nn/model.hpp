#pragma once

#include "finch/backend/device.hpp"
#include "finch/base/named_array.hpp"
#include "finch/nn/plan.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace finch::nn {

/// Bytes that a model and its optimizer need on `device`: the plan's, and what the device's operations share beside.
[[nodiscard]] std::int64_t memory_bytes(backend::Device& device, const ModelPlan& plan);

/// Learned parameters and buffers of a model, on the host.
struct ModelState {
    std::vector<float> parameters;  ///< laid out as the plan's tensors say
    std::vector<float> buffers;
    std::int64_t batches = 0;  ///< that it was trained with
};

/// A model's parameters and buffers on a device, as the plan's tensors lay them out.
class Weights {
public:
    /// All are 0. Throws std::bad_alloc. `device` must outlive it.
    Weights(backend::Device& device, const ModelPlan& plan);

    [[nodiscard]] std::span<float> parameters() const noexcept { return parameters_.span(); }
    [[nodiscard]] std::span<float> buffers() const noexcept { return buffers_.span(); }

    /// `batches` is 0 if they are not counted.
    [[nodiscard]] ModelState state() const;
    void set_state(const ModelState& state);

private:
    backend::Device& device_;
    backend::Buffer parameters_;
    backend::Buffer buffers_;
};

/// A network over ONE flat parameter and ONE flat gradient arena, both canonical (nn/plan.hpp).
class Model {
public:
    /// Allocates everything; all weights are 0. Throws std::bad_alloc. `device` must outlive it. forward() always takes
    /// plan.batch samples, in training and in validation: one shape needs one plan.
    Model(backend::Device& device, ModelPlan plan);

    [[nodiscard]] const ModelPlan& plan() const noexcept { return plan_; }
    [[nodiscard]] const Weights& weights() const noexcept { return weights_; }
    [[nodiscard]] std::span<float> parameters() noexcept { return weights_.parameters(); }
    [[nodiscard]] std::span<const float> parameters() const noexcept { return weights_.parameters(); }
    [[nodiscard]] std::span<float> grads() noexcept { return grads_.span(); }
    /// Buffer for the input batch (batch, H, W, C), to be written before forward().
    [[nodiscard]] float* input() noexcept { return at(plan_.values.front().offset); }
    /// The logits (batch, classes) after forward().
    [[nodiscard]] const float* logits() const noexcept { return at(plan_.values.back().offset); }
    /// Buffer for the gradient of the logits, to be written before backward().
    [[nodiscard]] float* grad_logits() noexcept { return at(plan_.grad_logits); }

    /// Must follow every change of parameters() before the next forward().
    void pack() { pack(weights_); }
    /// forward() computes by `weights` from now on, until the next pack(). They must stay where they are.
    void pack(const Weights& weights);
    void forward(const backend::Pass& pass);
    /// Fills grads(). After each node that has parameters calls `ready(begin, end)`: grads()[begin, end) are final;
    /// the ranges come in the arena's order and cover it without a gap.
    void backward(const backend::Pass& pass, const std::function<void(std::int64_t begin, std::int64_t end)>& ready);

    /// How many doubles each node sums over the ranks in forward(), and in backward(): in a training step the former
    /// come in the nodes' order, the latter in the opposite one. 0: none.
    [[nodiscard]] std::size_t forward_sums(std::size_t node) const { return operations_[node]->forward_sums(); }
    [[nodiscard]] std::size_t backward_sums(std::size_t node) const {
        return plan_.nodes[node].has_backward ? operations_[node]->backward_sums() : 0;
    }

    /// `batches` is 0: a model does not count.
    [[nodiscard]] ModelState state() const { return weights_.state(); }
    /// With pack().
    void set_state(const ModelState& state);

private:
    [[nodiscard]] float* at(std::int64_t offset) const noexcept { return activations_.data() + offset; }

    backend::Device& device_;
    ModelPlan plan_;
    Weights weights_;
    backend::Buffer grads_;
    backend::Buffer activations_;
    std::vector<std::unique_ptr<backend::Operation>> operations_;  ///< by node
    std::vector<const float*> inputs_;                             ///< of the node that is at work
    std::vector<float*> grad_inputs_;
};

/// All tensors under PyTorch's names behind `prefix`; and back. read_tensors throws FileError if a name, a type or a
/// shape does not fit.
[[nodiscard]] NamedArrays name_tensors(const ModelPlan& plan, const ModelState& state, const std::string& prefix = {});
[[nodiscard]] ModelState read_tensors(const ModelPlan& plan, const NamedArrays& arrays, const std::string& prefix = {});

}  // namespace finch::nn
