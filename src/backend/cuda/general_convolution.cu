#include "general_convolution.hpp"
#include "grid.hpp"
#include "kernels/general_convolution.hpp"
#include "runtime.hpp"

namespace finch::backend::cuda {

void general_forward(cudaStream_t stream, const ConvolutionShape& shape, const float* x, const float* weights,
                     float* y) {
    const std::int64_t outputs = shape.batch * shape.height_out() * shape.width_out() * shape.channels_out;
    FINCH_CUDA(launch(stream, grid_for(outputs), GeneralForward{.s = shape, .x = x, .weights = weights, .y = y}));
}

void general_data_gradient(cudaStream_t stream, const ConvolutionShape& shape, const float* grad_y,
                           const float* weights, float* grad_x) {
    const std::int64_t inputs = shape.batch * shape.height * shape.width * shape.channels_in;
    FINCH_CUDA(launch(stream, grid_for(inputs),
                      GeneralDataGradient{.s = shape, .grad_y = grad_y, .weights = weights, .grad_x = grad_x}));
}

void general_weight_gradient(cudaStream_t stream, const ConvolutionShape& shape, const float* x, const float* grad_y,
                             float* grad_weights) {
    const Grid grid{.blocks_x = shape.weights(),
                    .threads = GeneralWeightGradient::max_threads,
                    .shared_bytes = GeneralWeightGradient::max_threads * sizeof(float)};
    FINCH_CUDA(launch(stream, grid,
                      GeneralWeightGradient{.s = shape, .x = x, .grad_y = grad_y, .grad_weights = grad_weights}));
}

}  // namespace finch::backend::cuda
