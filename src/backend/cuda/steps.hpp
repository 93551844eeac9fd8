#pragma once

#include "recorded_launch.hpp"
#include "step_row.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <span>

// The parts of a training step that are not layers. All functions enqueue work on `stream` and return immediately. Each
// function is documented at the method of Device that calls it. All functions throw ApiError if CUDA rejects a launch.
namespace finch::backend::cuda {

/// Sets the numbers of steps that the members of a gang will execute.
void launch_set_gang_steps(cudaStream_t stream, GangSteps* steps, const std::array<std::int32_t, most_members>& left);
/// Copies the step's row to state->current, multiplies its grad_scale by the loss scale, and writes the step's images
/// to `out` (batch, H·W·C).
void launch_load_batch(cudaStream_t stream, const StepView& step, float* out);
/// Adds the losses to state->sums, and increments state->row. `grad` may be null.
void launch_softmax_cross_entropy(cudaStream_t stream, const StepView& step, const float* logits, std::int64_t classes,
                                  float* grad);
/// Adds the losses to state->sums, and increments state->row. `grad` may be null.
void launch_regression_loss(cudaStream_t stream, const StepView& step, Regression kind, const float* predictions,
                            std::int64_t outputs, float* grad);
/// Uses and updates state->loss_scale, and updates the scalars of the current step in state->current.
void launch_unscale(cudaStream_t stream, StepState* state, float* grads, std::size_t count);
/// `scratch` has Device::clip_scratch floats.
void launch_clip_norm(cudaStream_t stream, float* grads, std::size_t count, double most, double* scratch);
/// Uses the scalars in state->current. `state_a` and `state_b` may be null if the optimizer does not use them.
void launch_optimizer_step(cudaStream_t stream, const Optimizer& optimizer, std::span<const ParameterRange> ranges,
                           const StepState* state, float* parameters, const float* grads, float* state_a,
                           float* state_b);
/// Uses the average_share in state->current.
void launch_average(cudaStream_t stream, const StepState* state, const float* values, float* averages,
                    std::size_t count);

}  // namespace finch::backend::cuda
