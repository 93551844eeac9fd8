#pragma once

#include "finch/backend/operation.hpp"

#include "stream.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace finch::backend::cuda {

/// Finch's own kernels for few channels: NHWC, float32, with fused bias and activation, without packing or padding.
[[nodiscard]] bool direct_suits(const DeviceFacts& facts, const ConvolutionShape& shape);
[[nodiscard]] bool direct_suits(const DeviceFacts& facts, const LinearShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make_direct(Stream& stream, const ConvolutionShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make_direct(Stream& stream, const LinearShape& shape);

/// The general implementation: cuDNN for any convolution, cuBLASLt for any linear layer.
[[nodiscard]] std::unique_ptr<Operation> make_library(Stream& stream, const ConvolutionShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make_library(Stream& stream, const LinearShape& shape);

/// Makes an operation that only Finch's own kernels implement. The file that implements a shape specialises this
/// template.
template <class Shape>
[[nodiscard]] std::unique_ptr<Operation> make(Stream& stream, const Shape& shape);

/// The bytes that an operation needs beyond its tensors.
struct OperationBytes {
    std::size_t scratch = 0;  ///< from Stream::scratch(). Workspaces: at most 64 MiB for cuDNN, 4 MiB for cuBLASLt
    std::size_t kept = 0;     ///< gradients until finish_deferred(), beyond those in ModelPlan::bytes
};
[[nodiscard]] OperationBytes direct_bytes(Stream& stream, const ConvolutionShape& shape);
[[nodiscard]] OperationBytes direct_bytes(Stream& stream, const LinearShape& shape);
[[nodiscard]] OperationBytes library_bytes(Stream& stream, const ConvolutionShape& shape);
[[nodiscard]] OperationBytes library_bytes(Stream& stream, const LinearShape& shape);
[[nodiscard]] std::size_t scratch(Stream& stream, const BatchNormShape& shape);
[[nodiscard]] std::size_t scratch(Stream& stream, const LayerNormShape& shape);

/// Enqueues the work in Stream::deferred(), with one kernel for several layers. finish_packing() enqueues only the
/// packing of weights.
void finish_deferred(Stream& stream);
void finish_packing(Stream& stream);

/// Adds `count` numbers of `from` to `to` in the order of `stream`.
void accumulate(cudaStream_t stream, const float* from, float* to, std::int64_t count, TensorType type);

}  // namespace finch::backend::cuda
