#pragma once

#include "finch/backend/device.hpp"
#include "finch/nn/model.hpp"

#include <cstdint>

namespace finch::nn {

/// The exponential moving average of a model's parameters and buffers over the steps of a training:
/// torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn(decay) and use_buffers. The first step's are copied;
/// after each later one average = decay · average + (1 − decay) · present.
class WeightAverage {
public:
    /// Throws std::bad_alloc. `device` must outlive it. `decay` is in [0, 1).
    WeightAverage(backend::Device& device, const ModelPlan& plan, double decay);

    /// How many weights were taken up so far (AveragedModel's n_averaged): steps, and what it began with.
    [[nodiscard]] std::int64_t taken() const noexcept { return taken_; }
    /// Counts a step, and gives its StepScalars::average_share.
    [[nodiscard]] float next() noexcept;
    /// Asks the device to take up the model's present weights with the share of the present step.
    void apply(backend::StepContext& step, const Model& model);
    /// Has the model's forward() compute by the average, until the model's own pack().
    void pack_into(Model& model) const { model.pack(weights_); }

    /// `batches` is 0, as a model's.
    [[nodiscard]] ModelState state() const { return weights_.state(); }
    void set_state(const ModelState& state, std::int64_t taken);

private:
    backend::Device& device_;
    Weights weights_;
    float share_;
    std::int64_t taken_ = 0;
};

}  // namespace finch::nn
