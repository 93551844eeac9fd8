#pragma once

#include "finch/backend/operation.hpp"

#include "deferred.hpp"

#include <cstddef>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// Copies between Finch's layouts and the layouts that the libraries' kernels need, and related operations. All
// functions enqueue work on `stream`, allocate nothing and throw ApiError if CUDA rejects a launch. `From` and `To` are
// float, __nv_bfloat16 or __half (rounded to nearest even); at least one of them is float.
namespace finch::backend::cuda {

/// Copies (rows, channels_from) to (rows, channels_to). Added channels are zero, surplus channels are dropped. A tensor
/// in NHWC has N·H·W rows.
template <class From, class To>
void copy_channels(cudaStream_t stream, const From* from, std::int64_t rows, std::int64_t channels_from, To* to,
                   std::int64_t channels_to);

/// move_images() copies (batch, height, width, channels) to (batch, height_to, width_to, channels_to), moved by `down`
/// rows and columns (up and left if negative). Positions without a source pixel become zero. The function is used to
/// pad images and their channels, and to remove the padding.
struct ImageSizes {
    std::int64_t height = 1;
    std::int64_t width = 1;
    std::int64_t channels = 1;
};
template <class From, class To>
void move_images(cudaStream_t stream, std::int64_t batch, const From* from, const ImageSizes& from_sizes, To* to,
                 const ImageSizes& to_sizes, std::int64_t down);

/// Transposes (batch, rows, columns) to (batch, columns, rows). To convert a linear layer's weights (units, C·H·W) from
/// CHW to HWC columns: batch = units, rows = C, columns = H·W. To convert the weights back: rows = H·W, columns = C.
void transpose(cudaStream_t stream, const float* from, std::int64_t batch, std::int64_t rows, std::int64_t columns,
               float* to);

/// Computes `y` (rows, channels) = f(from + bias). `from` is (rows, channels_from ≥ channels); its surplus channels are
/// dropped. `from` may be `y`. `bias` may be null.
template <class From, class To>
void bias_activation(cudaStream_t stream, Activation activation, const From* from, std::int64_t channels_from,
                     const float* bias, To* y, std::int64_t rows, std::int64_t channels);

/// Replaces `grad` (rows, channels), the gradient after the activation, with grad · f′(y), and computes in `partial`
/// the partial sums of its rows, always in the same order. Returns these sums; add_partials() writes the gradient of
/// the bias to `sums` (channels). `Number` is float, or __nv_bfloat16 if `channels` is a multiple of 8. `partial` has
/// at least bias_gradient_partials(rows, channels) bytes.
template <class Number>
[[nodiscard]] PartialSums bias_gradient(cudaStream_t stream, Activation activation, const Number* y, Number* grad,
                                        std::int64_t rows, std::int64_t channels, float* partial, float* sums);
[[nodiscard]] std::size_t bias_gradient_partials(std::int64_t rows, std::int64_t channels);

}  // namespace finch::backend::cuda
