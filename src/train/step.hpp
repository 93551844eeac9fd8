#pragma once

#include "finch/comm/all_reduce.hpp"
#include "finch/nn/model.hpp"
#include "finch/nn/optimizer.hpp"
#include "finch/train/buckets.hpp"

#include "samples.hpp"

#include <cstdint>
#include <exception>
#include <span>

namespace finch::train {

/// A model, its optimizer and its data on this rank: everything whose size depends on the batch. Does single steps.
///
/// What a computation throws is kept, and from then on the collectives run with zeros and the losses are NaN: the other
/// ranks are not left waiting. throw_failure() then tells.
class Learner {
public:
    /// `device`, `all_reduce` and `dataset` must outlive it. Throws std::bad_alloc.
    Learner(backend::Device& device, comm::AllReduce& all_reduce, nn::ModelPlan plan,
            const nn::OptimizerOptions& optimizer, const data::Dataset& dataset, const data::Options& normalisation);

    [[nodiscard]] nn::Model& model() noexcept { return model_; }
    [[nodiscard]] nn::Optimizer& optimizer() noexcept { return optimizer_; }

    /// The weights, as a host arena; and back.
    [[nodiscard]] std::vector<float> weights() const;
    void set_weights(std::span<const float> weights);

    /// Collective over the worker. One optimizer step on a global batch of `batch_samples`, of which the images
    /// `indices` are this rank's. Their losses are added to `sums`.
    void train(std::span<const std::int64_t> indices, std::int64_t batch_samples, double learning_rate,
               backend::LossSums& sums);
    /// Local. Adds the losses of the images `indices` to `sums`.
    void validate(std::span<const std::int64_t> indices, backend::LossSums& sums);

    /// Throws what a computation threw since the last call, if one did.
    void throw_failure();

private:
    template <class Work>
    void attempt(backend::LossSums& sums, Work&& work);
    void compute_grads(std::span<const std::int64_t> indices, float grad_scale, backend::LossSums& sums);
    void reduce(std::span<const Bucket> buckets);
    void zero_grads(std::span<const Bucket> buckets);

    backend::Device& device_;
    comm::AllReduce& all_reduce_;
    // The model's accessors are not const, its weights are read by const functions here.
    mutable nn::Model model_;
    nn::Optimizer optimizer_;
    Samples samples_;
    BucketSchedule buckets_;
    std::exception_ptr failure_;
};

}  // namespace finch::train
