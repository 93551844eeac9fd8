#pragma once

#include "kernel_launch.hpp"
#include "step_row.hpp"

namespace finch::backend::cuda {

/// The kernel that copies the row of the next step to `current` and multiplies grad_scale by the loss scale. One
/// thread.
struct NextStep {
    static constexpr int max_threads = 32;
    static constexpr bool begins_step = true;
    StepView step;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& /*thread*/) const {
        step.state->current = step.rows[step.state->next];
        step.state->current.grad_scale *= step.state->loss_scale.scale;
        step.state->next += 1;
    }
};

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

}  // namespace finch::backend::cuda
