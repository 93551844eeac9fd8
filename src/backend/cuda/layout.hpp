#pragma once

#include "finch/backend/operation.hpp"

#include "deferred.hpp"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

// Copies between Finch's layouts and the layouts that the libraries' kernels need, and related operations. All
// functions enqueue work on `stream`, allocate nothing and throw ApiError if CUDA rejects a launch.
namespace finch::backend::cuda {

/// A tensor of any type in device memory: a Source is read, a Target is written. Numbers are rounded to nearest even.
/// At least one of the two is float32; bias_activation() and bias_gradient() also accept two bfloat16 tensors.
struct Source {
    const void* data;
    TensorType type = TensorType::float32;
};
struct Target {
    void* data;
    TensorType type = TensorType::float32;
};

/// Copies (rows, channels_from) to (rows, channels_to). Added channels are zero, surplus channels are dropped. A tensor
/// in NHWC has N·H·W rows.
void copy_channels(cudaStream_t stream, const Source& from, std::int64_t rows, std::int64_t channels_from,
                   const Target& to, std::int64_t channels_to);

/// move_images() copies (batch, height, width, channels) to (batch, height_to, width_to, channels_to), moved by `down`
/// rows and columns (up and left if negative). Positions without a source pixel become zero. The function is used to
/// pad images and their channels, and to remove the padding.
struct ImageSizes {
    std::int64_t height = 1;
    std::int64_t width = 1;
    std::int64_t channels = 1;
};
void move_images(cudaStream_t stream, std::int64_t batch, const Source& from, const ImageSizes& from_sizes,
                 const Target& to, const ImageSizes& to_sizes, std::int64_t down);

/// Transposes (batch, rows, columns) to (batch, columns, rows). To convert a linear layer's weights (units, C·H·W) from
/// CHW to HWC columns: batch = units, rows = C, columns = H·W. To convert the weights back: rows = H·W, columns = C.
void transpose(cudaStream_t stream, const float* from, std::int64_t batch, std::int64_t rows, std::int64_t columns,
               float* to);

/// Computes `y` (rows, channels) = f(from + bias). `from` is (rows, channels_from ≥ channels); its surplus channels are
/// dropped. `from` may be `y`. `bias` may be null.
void bias_activation(cudaStream_t stream, Activation activation, const Source& from, std::int64_t channels_from,
                     const float* bias, const Target& y, std::int64_t rows, std::int64_t channels);

/// Replaces `grad` (rows, channels), the gradient after the activation, with grad · f′(y), and computes in `partial`
/// the partial sums of its rows, always in the same order. Returns these sums; add_partials() writes the gradient of
/// the bias to `sums` (channels). y and `grad` are float32, or bfloat16 if `channels` is a multiple of 8. `partial` has
/// at least bias_gradient_partials(rows, channels) bytes.
[[nodiscard]] PartialSums bias_gradient(cudaStream_t stream, Activation activation, const Source& y, const Target& grad,
                                        std::int64_t rows, std::int64_t channels, float* partial, float* sums);
[[nodiscard]] std::size_t bias_gradient_partials(std::int64_t rows, std::int64_t channels);

}  // namespace finch::backend::cuda
