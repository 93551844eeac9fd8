#pragma once

#include "step_row.hpp"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

// What a training step does beside its layers. All put work in line on `stream` and return at once; Device says what
// each does. They throw ApiError if CUDA refuses the launch.
namespace finch::backend::cuda {

/// The row state->next becomes state->current, and state->next is raised.
void launch_next_step(cudaStream_t stream, const StepView& step);
/// `out` (batch, H·W·C) becomes the images of the present step.
void launch_load_batch(cudaStream_t stream, const StepView& step, float* out);
/// Adds to state->sums; `grad` may be null.
void launch_softmax_cross_entropy(cudaStream_t stream, const StepView& step, const float* logits, std::int64_t classes,
                                  float* grad);
/// Adds to state->sums; `grad` may be null.
void launch_regression_loss(cudaStream_t stream, const StepView& step, Regression kind, const float* predictions,
                            std::int64_t outputs, float* grad);
/// By state->loss_scale, which it changes, and with it what state->current says of the present step.
void launch_unscale(cudaStream_t stream, StepState* state, float* grads, std::size_t count);
/// `scratch` has Device::clip_scratch floats.
void launch_clip_norm(cudaStream_t stream, float* grads, std::size_t count, double most, double* scratch);
/// By the scalars in state->current. `state_a` and `state_b` may be null if the optimizer has no such state.
void launch_optimizer_step(cudaStream_t stream, const Optimizer& optimizer, bool decays, const StepState* state,
                           float* parameters, const float* grads, float* state_a, float* state_b, std::size_t count);
/// By the share in state->current.
void launch_average(cudaStream_t stream, const StepState* state, const float* values, float* averages,
                    std::size_t count);

}  // namespace finch::backend::cuda
