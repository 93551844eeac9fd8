#pragma once

#include "finch/backend/device.hpp"
#include "finch/base/named_array.hpp"
#include "finch/nn/spec.hpp"

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace finch::nn {

/// Bytes that a model and its optimizer need on `device`: the plan's, and what the device's operations share beside.
[[nodiscard]] std::int64_t memory_bytes(backend::Device& device, const ModelPlan& plan);

/// A network over ONE flat parameter and ONE flat gradient arena, both canonical (nn/spec.hpp).
class Model {
public:
    /// Allocates everything; all weights are 0. Throws std::bad_alloc. `device` must outlive it. forward() always takes
    /// plan.batch samples, in training and in validation: one shape needs one plan.
    Model(backend::Device& device, ModelPlan plan);

    [[nodiscard]] const ModelPlan& plan() const noexcept { return plan_; }
    [[nodiscard]] std::span<float> parameters() noexcept { return parameters_.span(); }
    [[nodiscard]] std::span<float> grads() noexcept { return grads_.span(); }
    /// Where the input batch (batch, H, W, C) is to be written before forward().
    [[nodiscard]] float* input() noexcept { return outputs_.front().data(); }
    /// The logits (batch, classes) after forward().
    [[nodiscard]] const float* logits() const noexcept { return outputs_.back().data(); }
    /// Where the gradient of the logits is to be written before backward().
    [[nodiscard]] float* grad_logits() noexcept { return grad_outputs_[operations_.size() % 2].data(); }

    /// Must follow every change of parameters() before the next forward().
    void pack();
    void forward();
    /// Fills grads(). After each layer that has parameters calls `ready(begin, end)`: grads()[begin, end) are final;
    /// the ranges come in the arena's order and cover it without a gap.
    void backward(const std::function<void(std::int64_t begin, std::int64_t end)>& ready);

    /// All tensors under PyTorch's names; and back. set_tensors throws FileError where a name or shape does not fit;
    /// pack() must follow it.
    [[nodiscard]] NamedArrays tensors() const;
    void set_tensors(const NamedArrays& tensors);

private:
    backend::Device& device_;
    ModelPlan plan_;
    backend::Buffer parameters_;
    backend::Buffer grads_;
    std::vector<std::unique_ptr<backend::Operation>> operations_;
    std::vector<backend::Buffer> outputs_;  ///< the input, then each layer's output
    /// Gradients of outputs_[i] in number i mod 2: backward reads one and writes the other.
    std::array<backend::Buffer, 2> grad_outputs_;
    std::size_t first_trained_ = 0;  ///< the first layer with parameters: backward ends there
};

/// The tensors of a host arena, their names behind `prefix`; and back. read_tensors throws FileError where a name, a
/// type or a shape does not fit.
[[nodiscard]] NamedArrays name_tensors(const ModelPlan& plan, std::span<const float> arena,
                                       const std::string& prefix = {});
void read_tensors(const ModelPlan& plan, const NamedArrays& arrays, const std::string& prefix, std::span<float> arena);

}  // namespace finch::nn
