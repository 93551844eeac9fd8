#pragma once

#include "kernel_launch.hpp"
#include "step_row.hpp"

#include <cmath>
#include <cstdint>

// Dynamic loss scaling (finch/backend/loss_scale.hpp) with its state on the device, so that a step needs no message
// from the host.
namespace finch::backend::cuda {

/// The kernel that divides the gradients by the loss scale and sets `found_overflow` if a gradient is not finite.
struct Unscale {
    static constexpr int max_threads = 256;
    StepState* state;
    float* grads;
    std::int64_t count;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const float inverse = 1 / state->loss_scale.scale;
        bool all_finite = true;
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            const float grad = grads[i];
            all_finite = all_finite && fabsf(grad) < INFINITY;
            grads[i] = grad * inverse;
        }
        if (!all_finite) {
            state->found_overflow = 1;  // all threads that write here write the same value
        }
    }
};

/// The kernel that calls LossScale::decide() with the `found_overflow` that Unscale has set. One thread.
struct DecideOnStep {
    static constexpr int max_threads = 32;
    StepState* state;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& /*thread*/) const {
        state->loss_scale.decide(state->found_overflow == 0, state->current.optimizer, state->current.average_share);
        state->found_overflow = 0;
    }
};

}  // namespace finch::backend::cuda
