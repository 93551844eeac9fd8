#pragma once

#include "finch/backend/operation.hpp"

#include "stream.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace finch::backend::cuda {

/// Finch's own kernels for few channels: NHWC, float32, bias and activation fused; no packing, no padding.
[[nodiscard]] bool direct_suits(const DeviceFacts& facts, const ConvolutionShape& shape);
[[nodiscard]] bool direct_suits(const DeviceFacts& facts, const LinearShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make_direct(Stream& stream, const ConvolutionShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make_direct(Stream& stream, const LinearShape& shape);

/// The general path: cuDNN for any convolution, cuBLASLt for any linear layer.
[[nodiscard]] std::unique_ptr<Operation> make_library(Stream& stream, const ConvolutionShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make_library(Stream& stream, const LinearShape& shape);

/// What has one implementation, Finch's own: the file that implements a shape specialises it.
template <class Shape>
[[nodiscard]] std::unique_ptr<Operation> make(Stream& stream, const Shape& shape);

/// Bytes that an operation would ask of Stream::scratch(). The libraries' workspaces are bounded: cuDNN's by 64 MiB,
/// cuBLASLt's by 4 MiB.
[[nodiscard]] std::size_t direct_scratch(Stream& stream, const ConvolutionShape& shape);
[[nodiscard]] std::size_t direct_scratch(Stream& stream, const LinearShape& shape);
[[nodiscard]] std::size_t library_scratch(Stream& stream, const ConvolutionShape& shape);
[[nodiscard]] std::size_t library_scratch(Stream& stream, const LinearShape& shape);
[[nodiscard]] std::size_t scratch(Stream& stream, const BatchNormShape& shape);
[[nodiscard]] std::size_t scratch(Stream& stream, const LayerNormShape& shape);

/// `to` += `from`, in line on `stream`.
void accumulate(cudaStream_t stream, const float* from, float* to, std::int64_t count);

}  // namespace finch::backend::cuda
