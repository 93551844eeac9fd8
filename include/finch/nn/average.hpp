#pragma once

#include "finch/backend/device.hpp"
#include "finch/nn/model.hpp"

#include <cstdint>

namespace finch::nn {

/// The exponential moving average of a model's parameters and buffers over the steps of a training, as in
/// torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn(decay) and use_buffers. The first step copies the
/// model's values to the average. Each later step computes average = decay · average + (1 − decay) · present.
class WeightAverage {
public:
    /// Throws std::bad_alloc. `device` must outlive this object. `decay` is in [0, 1).
    WeightAverage(backend::Device& device, const ModelPlan& plan, double decay);

    /// Number of weight sets in the average (AveragedModel's n_averaged): the steps, plus 1 if the average started from
    /// given weights.
    [[nodiscard]] std::int64_t taken() const noexcept { return taken_; }
    /// Counts a step and returns its StepScalars::average_share.
    [[nodiscard]] float next() noexcept;
    /// Enqueues the update of the average by the model's present weights, with the average_share of the present step.
    void apply(backend::StepContext& step, const Model& model);
    /// Makes the model's forward() use the averaged weights until the next Model::pack().
    void pack_into(Model& model) const { model.pack(weights_); }

    /// Returns the averaged weights; ModelState::batches is 0.
    [[nodiscard]] ModelState state() const { return weights_.state(); }
    void set_state(const ModelState& state, std::int64_t taken);

private:
    backend::Device& device_;
    Weights weights_;
    float share_;
    std::int64_t taken_ = 0;
};

}  // namespace finch::nn
