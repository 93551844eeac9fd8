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

/// Returns the plan with the layouts and types of activations that `device` prefers. Convolutions may leave their bias
/// to the batch normalisation that follows. Places the activations anew.
[[nodiscard]] ModelPlan with_layouts(const backend::Device& device, ModelPlan plan);

/// Returns the bytes that a model and its optimizer need on `device`: ModelPlan::bytes plus, for each thread
/// of the device, the scratch memory that the operations share and the memory that each of them keeps.
[[nodiscard]] std::int64_t memory_bytes(backend::Device& device, const ModelPlan& plan);

/// The learned parameters and buffers of a model, in host memory.
struct ModelState {
    std::vector<float> parameters;  ///< laid out by ModelPlan::tensors
    std::vector<float> buffers;
    std::int64_t batches = 0;  ///< number of batches that the model was trained with
};

/// A model's parameters and buffers in device memory, laid out by ModelPlan::tensors.
class Weights {
public:
    /// Allocates the arrays and sets them to 0. Throws std::bad_alloc. `device` must outlive this object.
    Weights(backend::Device& device, const ModelPlan& plan);

    [[nodiscard]] std::span<float> parameters() const noexcept { return parameters_.span(); }
    [[nodiscard]] std::span<float> buffers() const noexcept { return buffers_.span(); }

    /// Returns a copy of the values in host memory. Its ModelState::batches is 0.
    [[nodiscard]] ModelState state() const;
    void set_state(const ModelState& state);

private:
    backend::Device& device_;
    backend::Buffer parameters_;
    backend::Buffer buffers_;
};

/// A network with ONE flat arena for all parameters and ONE for all gradients, both laid out by its plan (nn/plan.hpp).
class Model {
public:
    /// Adds the losses of the present batch of `step`, which has these `logits`, to the sums of `step`. Writes the
    /// gradient of the logits to `grad` unless `grad` is null. The replicas call this function at the same time.
    using AddLosses = std::function<void(backend::StepContext& step, const float* logits, float* grad)>;
    /// Receives a range of grads() that is final.
    using Ready = std::function<void(std::int64_t begin, std::int64_t end)>;

    /// Allocates all memory and sets all weights to 0. Throws std::bad_alloc. `device` must outlive this object.
    Model(backend::Device& device, ModelPlan plan);

    [[nodiscard]] const ModelPlan& plan() const noexcept { return plan_; }
    [[nodiscard]] const Weights& weights() const noexcept { return weights_; }
    [[nodiscard]] std::span<float> parameters() noexcept { return weights_.parameters(); }
    [[nodiscard]] std::span<const float> parameters() const noexcept { return weights_.parameters(); }
    [[nodiscard]] std::span<float> grads() noexcept { return grads_.span(); }
    /// The logits (batch, classes) of the last batch.
    [[nodiscard]] const float* logits() const noexcept { return logits_.data(); }

    /// Packs the parameters for the operations. Call pack() after every change of parameters(), before the next
    /// forward().
    void pack() { pack(weights_); }
    /// Makes forward() use `weights` until the next pack(). The memory of `weights` must stay valid until the next
    /// pack().
    void pack(const Weights& weights);
    /// Computes the logits and losses of the present batch of `pass.step`, block by block.
    void evaluate(const backend::Pass& pass, const AddLosses& add_losses);
    /// Computes the logits, losses and gradients of the present batch of `pass.step`, block by block. Fills grads().
    /// The ranges of `ready` come in the order of the gradient arena and cover it without gaps.
    void compute_grads(const backend::Pass& pass, const AddLosses& add_losses, const Ready& ready);

    // The parts of the functions above, for a batch that is one block.
    /// The buffer of the input (batch, H, W, C). The caller writes the input before forward().
    [[nodiscard]] float* input() noexcept { return replicas_.front().at(plan_.values.front().offset); }
    /// The buffer of the gradient of the logits. The caller writes the gradient of the logits before backward().
    [[nodiscard]] float* grad_logits() noexcept { return replicas_.front().at(plan_.grad_logits); }
    void forward(const backend::Pass& pass) { forward(replicas_.front(), pass); }
    void backward(const backend::Pass& pass, const Ready& ready) { backward(replicas_.front(), pass, ready); }

    /// Number of doubles that `node` all-reduces in forward() and in backward(); 0 if there are none. In a training
    /// step, forward() runs through the nodes in order and backward() in reverse order.
    [[nodiscard]] std::size_t forward_sums(std::size_t node) const {
        return replicas_.front().operations[node]->forward_sums();
    }
    [[nodiscard]] std::size_t backward_sums(std::size_t node) const {
        return plan_.nodes[node].has_backward ? replicas_.front().operations[node]->backward_sums() : 0;
    }

    /// Returns the weights; ModelState::batches is 0, because a Model does not count batches.
    [[nodiscard]] ModelState state() const { return weights_.state(); }
    /// Sets the weights and calls pack().
    void set_state(const ModelState& state);

private:
    /// The operations and the memory for one block at a time. The replicas of a model compute blocks concurrently.
    struct Replica {
        [[nodiscard]] float* at(std::int64_t offset) const noexcept { return activations.data() + offset; }

        std::unique_ptr<backend::Device> device;  ///< that made the operations; null: the model's device
        std::vector<std::unique_ptr<backend::Operation>> operations;  ///< per node
        backend::Buffer activations;
        backend::Buffer own_grads;  ///< empty in replica 0, which writes to the model's gradients
        std::span<float> grads;
        float* logits = nullptr;           ///< of the present block
        std::vector<const float*> inputs;  ///< of the node that is computed now
        std::vector<float*> grad_inputs;
    };

    void make(std::int64_t number, Replica& replica);
    [[nodiscard]] float* value(const Replica& replica, std::size_t index) const noexcept;
    void forward(Replica& replica, const backend::Pass& pass);
    void backward(Replica& replica, const backend::Pass& pass, const Ready& ready);
    template <class Work>
    void for_replicas(Work work);
    template <class Work>
    void for_blocks(const backend::Pass& pass, Work work);
    void add_replicas(const Ready& ready);

    backend::Device& device_;
    ModelPlan plan_;
    Weights weights_;
    backend::Buffer grads_;
    backend::Buffer logits_;
    std::vector<Replica> replicas_;
};

/// Converts a model state to arrays named `prefix` + PyTorch's name, and back. read_tensors() throws FileError if a
/// name is missing or if a type or shape does not fit.
[[nodiscard]] NamedArrays name_tensors(const ModelPlan& plan, const ModelState& state, const std::string& prefix = {});
[[nodiscard]] ModelState read_tensors(const ModelPlan& plan, const NamedArrays& arrays, const std::string& prefix = {});

}  // namespace finch::nn
