#pragma once

#include "finch/backend/device.hpp"

#include <span>

/// Finch's own loops on the CPU.
namespace finch::backend::cpu {

void softmax_cross_entropy(const float* logits, std::span<const std::int32_t> labels, std::span<const float> weights,
                           std::int64_t classes, float grad_scale, float* grad, LossSums& sums);

void optimizer_step(const OptimizerStep& step, float* parameters, const float* grads, float* state_a, float* state_b,
                    std::size_t count);

}  // namespace finch::backend::cpu
