#pragma once

#include "finch/backend/device.hpp"

#include <cstddef>

// What needs no oneDNN. Device says what each does.
namespace finch::backend::cpu {

void optimizer_step(const OptimizerStep& step, float* parameters, const float* grads, float* state_a, float* state_b,
                    std::size_t count);

}  // namespace finch::backend::cpu
