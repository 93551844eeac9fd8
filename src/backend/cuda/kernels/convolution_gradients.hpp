#pragma once

#include "kernels/convolution_forward.hpp"
#include "kernels/convolution_weight_gradient.hpp"

namespace finch::backend::cuda {

/// The kernel for both gradients of a convolution. With a small batch, each gradient alone would not fill the GPU.
/// Grid: x = the blocks of `weights`, then the blocks of `input`. The number of threads is that of `weights`.
template <int kernel, int weight_outputs, int input_outputs>
struct DirectGradients {
    static constexpr int max_threads = 256;
    static constexpr int least_blocks = 2;  ///< at most 128 registers
    DirectWeightGradient<kernel, weight_outputs> weights;
    DirectConvolution<kernel, 2, input_outputs> input;
    int weight_blocks;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        if (thread.block_x() < weight_blocks) {
            weights.compute(thread, thread.block_x(), weight_blocks);
        } else {
            input.compute(thread, thread.block_x() - weight_blocks);
        }
    }
};

}  // namespace finch::backend::cuda
