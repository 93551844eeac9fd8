#pragma once

#include "step_row.hpp"

#include <kernel_launch.hpp>

namespace finch::backend::cuda {

/// The kernel that copies the row of the next step to `current` and multiplies grad_scale by the loss scale. One
/// thread.
struct NextStep {
    static constexpr int max_threads = 32;
    StepView step;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& /*thread*/) const {
        step.state->current = step.rows[step.state->next];
        step.state->current.grad_scale *= step.state->loss_scale.scale;
        step.state->next += 1;
    }
};

}  // namespace finch::backend::cuda
