#pragma once

#include "feed_row.hpp"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

// What a training step does beside its layers. All put work in line on `stream` and return at once; Device says what
// each does. They throw ApiError where CUDA refuses the launch.
namespace finch::backend::cuda {

/// `out` (batch, H·W·C) becomes the images of the feed's present step.
void launch_gather(cudaStream_t stream, const FeedView& feed, float* out);
/// Adds to state->sums; `grad` may be null. Then rows[next] becomes state->current and state->next is raised.
void launch_softmax_cross_entropy(cudaStream_t stream, const FeedView& feed, const float* logits, std::int64_t classes,
                                  float* grad);
/// By the numbers in state->current. `state_a` and `state_b` may be null where `kind` has no such state.
void launch_optimizer_step(cudaStream_t stream, OptimizerKind kind, const FeedState* state, float* parameters,
                           const float* grads, float* state_a, float* state_b, std::size_t count);

}  // namespace finch::backend::cuda
