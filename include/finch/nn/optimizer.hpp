#pragma once

#include "finch/backend/device.hpp"
#include "finch/base/named_array.hpp"
#include "finch/nn/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace finch::nn {

/// Options of gradient clipping and weight decay that apply to every optimizer.
struct OptimizerLimits {
    std::optional<double> clip_norm = {};  ///< largest norm of all gradients together; empty: no clipping
    bool decay_all = true;                 ///< true: weight decay also applies to biases and normalisations
};

/// An optimizer with its state, which updates the flat parameter arena of a ModelPlan.
class Optimizer {
public:
    Optimizer(backend::Device& device, const backend::Optimizer& rule, const ModelPlan& plan,
              const OptimizerLimits& limits = {});

    /// Number of steps that next() has counted so far.
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    /// Counts a step and returns its scalars.
    [[nodiscard]] backend::OptimizerScalars next(double learning_rate);
    /// Enqueues the update of `parameters` with the scalars of the present step. If gradients are clipped, scales
    /// `grads` in place before the update.
    void apply(backend::StepContext& step, std::span<float> parameters, std::span<float> grads);

    /// state() returns the arrays "optimizer/step", "optimizer/state_a" …; set_state() restores them and throws
    /// FileError if they do not fit.
    [[nodiscard]] NamedArrays state() const;
    void set_state(const NamedArrays& state);

private:
    [[nodiscard]] static std::vector<backend::ParameterRange> ranges_of(const ModelPlan& plan);

    backend::Device& device_;
    backend::Optimizer rule_;
    OptimizerLimits limits_;
    std::vector<backend::ParameterRange> ranges_;
    backend::Buffer clip_scratch_;  ///< empty without clipping
    std::int64_t steps_ = 0;
    backend::Buffer state_a_;
    backend::Buffer state_b_;  ///< empty if the optimizer has no second state array
};

}  // namespace finch::nn
