#pragma once

#include "kernel_launch.hpp"
#include "step_row.hpp"

#include <cmath>
#include <cstdint>

// Kernels for the steps that a gang's members have left, and for dynamic loss scaling
// (finch/backend/loss_scale.hpp). The state is on the device, so that a step needs no message from the host.
namespace finch::backend::cuda {

/// The kernel that sets the numbers of steps that a gang's members will execute. At least most_members threads.
struct SetGangSteps {
    static constexpr int max_threads = 32;
    GangSteps* steps;
    std::int32_t left[most_members];

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        if (thread.index() < most_members) {
            steps->left[thread.index()] = left[thread.index()];
        }
    }
};

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
