#pragma once

#include "finch/backend/operation.hpp"

#include <cstddef>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// Copies between Finch's layouts and those that the libraries' kernels want, and what is done around them. All put work
// in line on `stream`, allocate nothing and throw ApiError if CUDA refuses a launch. `From` and `To` are float,
// __nv_bfloat16 or __half (rounded to nearest even), at least one of them float.
namespace finch::backend::cuda {

/// (rows, channels_from) → (rows, channels_to): added channels are zero, surplus ones are dropped. NHWC has N·H·W rows.
template <class From, class To>
void copy_channels(cudaStream_t stream, const From* from, std::int64_t rows, std::int64_t channels_from, To* to,
                   std::int64_t channels_to);

/// (batch, height, width, channels) → (batch, height_to, width_to, channels_to), moved by `down` rows and columns (or
/// up, where it is negative): zeros where nothing was. Pads images and their channels, and cuts padding off again.
struct ImageSizes {
    std::int64_t height = 1;
    std::int64_t width = 1;
    std::int64_t channels = 1;
};
template <class From, class To>
void move_images(cudaStream_t stream, std::int64_t batch, const From* from, const ImageSizes& from_sizes, To* to,
                 const ImageSizes& to_sizes, std::int64_t down);

/// (batch, rows, columns) → (batch, columns, rows). A linear layer's weights (units, C·H·W) from CHW to HWC columns:
/// batch units, rows C, columns H·W; back: rows H·W, columns C.
void transpose(cudaStream_t stream, const float* from, std::int64_t batch, std::int64_t rows, std::int64_t columns,
               float* to);

/// A convolution's weights: canonical (channels_out, channels_in, kernel, kernel), and as a library for NHWC wants
/// them: (padded_out, kernel, kernel, padded_in).
struct WeightSizes {
    std::int64_t channels_out = 1;
    std::int64_t channels_in = 1;  ///< of a group
    std::int64_t kernel = 1;
    std::int64_t padded_out = 1;  ///< at least channels_out
    std::int64_t padded_in = 1;   ///< at least channels_in
};
/// What is padded becomes zero.
template <class To>
void pack_weights(cudaStream_t stream, const WeightSizes& sizes, const float* canonical, To* packed);
void unpack_weights(cudaStream_t stream, const WeightSizes& sizes, const float* packed, float* canonical);

/// `y` (rows, channels) = f(from + bias) with `from` (rows, channels_from ≥ channels), whose surplus channels are
/// dropped. In place where `from` is `y`. `bias` may be null.
template <class From>
void bias_activation(cudaStream_t stream, Activation activation, const From* from, std::int64_t channels_from,
                     const float* bias, float* y, std::int64_t rows, std::int64_t channels);

/// `grad`, of `count` numbers behind the activation, becomes grad · f′(y).
void activation_gradient(cudaStream_t stream, Activation activation, const float* y, float* grad, std::int64_t count);

/// `sums` (channels) over the rows of `from` (rows, channels), always in the same order: a bias' gradient. `scratch`
/// has at least column_sums_scratch(rows, channels) bytes.
void column_sums(cudaStream_t stream, const float* from, std::int64_t rows, std::int64_t channels, void* scratch,
                 float* sums);
[[nodiscard]] std::size_t column_sums_scratch(std::int64_t rows, std::int64_t channels);

}  // namespace finch::backend::cuda
