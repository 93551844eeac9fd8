#pragma once

#include "finch/backend/device.hpp"
#include "finch/base/named_array.hpp"

#include <cstdint>
#include <span>

namespace finch::nn {

/// The optimizer's state over the flat arena.
class Optimizer {
public:
    Optimizer(backend::Device& device, const backend::Optimizer& rule, std::int64_t parameters);

    /// Steps that were counted so far.
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    /// Counts a step, and gives its scalars.
    [[nodiscard]] backend::OptimizerScalars next(double learning_rate);
    /// Asks the device for the update by the scalars of the present step.
    void apply(backend::StepContext& step, std::span<float> parameters, std::span<const float> grads);

    /// "optimizer/step", "optimizer/state_a" …; and back.
    [[nodiscard]] NamedArrays state() const;
    void set_state(const NamedArrays& state);

private:
    backend::Device& device_;
    backend::Optimizer rule_;
    std::int64_t steps_ = 0;
    backend::Buffer state_a_;
    backend::Buffer state_b_;  ///< empty where the optimizer has none
};

}  // namespace finch::nn
