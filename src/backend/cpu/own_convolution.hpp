#pragma once

#include "finch/backend/operation.hpp"

#include <cstdint>
#include <memory>

namespace finch::backend::cpu {

/// The smallest number of channels for which vectors hold channels (ChannelsKernels).
inline constexpr std::int64_t least_channels_of_vectors = 16;
/// Returns a 3 × 3 convolution by Finch's own kernels with channels along the vectors (ChannelsKernels). Returns null
/// if another implementation is faster for this shape, or if the kernels do not support it.
[[nodiscard]] std::unique_ptr<Operation> make_channels_convolution(const ConvolutionShape& shape);
/// Returns the bytes that such a convolution keeps beyond its weights, packed and summed in their canonical size.
[[nodiscard]] std::int64_t kept_bytes(const ConvolutionShape& shape);
/// True if the shape can be part of a chain of convolutions in planes, and is then faster than in NHWC.
[[nodiscard]] bool prefers_planes(const ConvolutionShape& shape);
/// Like make_channels_convolution(), with tiles along the vectors (PlanesKernels), for few channels.
[[nodiscard]] std::unique_ptr<Operation> make_planes_convolution(const ConvolutionShape& shape);

}  // namespace finch::backend::cpu
