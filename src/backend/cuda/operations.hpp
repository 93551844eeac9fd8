#pragma once

#include "finch/backend/operation.hpp"

#include "stream.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace finch::backend::cuda {

/// Finch's own kernels for few channels: NHWC, float32, bias and activation fused; no packing, no padding.
[[nodiscard]] bool direct_convolution_suits(const ConvolutionShape& shape, const DeviceFacts& facts);
[[nodiscard]] std::unique_ptr<Operation> make_direct_convolution(Stream& stream, const ConvolutionShape& shape);
[[nodiscard]] bool direct_linear_suits(const LinearShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make_direct_linear(Stream& stream, const LinearShape& shape);

/// The general path: cuDNN for any convolution, cuBLASLt for any linear layer.
[[nodiscard]] std::unique_ptr<Operation> make_cudnn_convolution(Stream& stream, const ConvolutionShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make_cublas_linear(Stream& stream, const LinearShape& shape);

/// Bytes that an operation would ask of Stream::scratch(). The libraries' workspaces are bounded: cuDNN's by 64 MiB,
/// cuBLASLt's by 4 MiB.
[[nodiscard]] std::size_t direct_convolution_scratch(Stream& stream, const ConvolutionShape& shape);
[[nodiscard]] std::size_t direct_linear_scratch(Stream& stream, const LinearShape& shape);
[[nodiscard]] std::size_t cudnn_convolution_scratch(Stream& stream, const ConvolutionShape& shape);
[[nodiscard]] std::size_t cublas_linear_scratch(Stream& stream, const LinearShape& shape);

[[nodiscard]] std::unique_ptr<Operation> make_pooling(Stream& stream, const PoolingShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make_activation(Stream& stream, const ActivationShape& shape);

}  // namespace finch::backend::cuda
