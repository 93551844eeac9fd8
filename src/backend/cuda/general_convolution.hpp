#pragma once

#include "finch/backend/operation.hpp"

#include <cuda_runtime.h>

namespace finch::backend::cuda {

/// The three passes of a convolution of any shape: float32, NHWC, canonical weights; without bias and activation, which
/// layout.hpp adds. Slow, and the last resort.
void general_forward(cudaStream_t stream, const ConvolutionShape& shape, const float* x, const float* weights,
                     float* y);
void general_data_gradient(cudaStream_t stream, const ConvolutionShape& shape, const float* grad_y,
                           const float* weights, float* grad_x);
void general_weight_gradient(cudaStream_t stream, const ConvolutionShape& shape, const float* x, const float* grad_y,
                             float* grad_weights);

}  // namespace finch::backend::cuda
