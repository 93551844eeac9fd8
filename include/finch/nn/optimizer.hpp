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

/// Clipping and weight decay, applied beside the optimizer's rule.
struct OptimizerLimits {
    std::optional<double> clip_norm = {};  ///< largest norm of all gradients; nothing: any
    bool decay_all = true;                 ///< weight decay for biases and normalisations too
};

/// The optimizer's state over the flat arena of a plan's parameters.
class Optimizer {
public:
    Optimizer(backend::Device& device, const backend::Optimizer& rule, const ModelPlan& plan,
              const OptimizerLimits& limits = {});

    /// Steps that were counted so far.
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    /// Counts a step, and gives its scalars.
    [[nodiscard]] backend::OptimizerScalars next(double learning_rate);
    /// Asks the device for the update by the scalars of the present step. Changes `grads` where they are clipped.
    void apply(backend::StepContext& step, std::span<float> parameters, std::span<float> grads);

    /// "optimizer/step", "optimizer/state_a" …; and back.
    [[nodiscard]] NamedArrays state() const;
    void set_state(const NamedArrays& state);

private:
    /// Neighbouring parameters that decay alike.
    struct Range {
        std::size_t begin = 0;
        std::size_t size = 0;
        bool decays = true;
    };
    [[nodiscard]] static std::vector<Range> ranges_of(const ModelPlan& plan);

    backend::Device& device_;
    backend::Optimizer rule_;
    OptimizerLimits limits_;
    std::vector<Range> ranges_;
    backend::Buffer clip_scratch_;  ///< empty if nothing is clipped
    std::int64_t steps_ = 0;
    backend::Buffer state_a_;
    backend::Buffer state_b_;  ///< empty if the optimizer has none
};

}  // namespace finch::nn
