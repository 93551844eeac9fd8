#pragma once

#include "finch/backend/operation.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace finch::backend::cpu {

// 3 × 3 convolutions by Finch's own kernels, in two kinds: with channels along the vectors (ChannelsKernels), and with
// tiles along the vectors, for few channels (PlanesKernels).

/// The smallest number of channels for which vectors hold channels.
inline constexpr std::int64_t least_channels_of_vectors = 16;

/// True if both kinds of kernels support this shape: float32, stride 1, no groups, no dilation, and little padding.
[[nodiscard]] bool is_own_shape(const ConvolutionShape& shape);
/// False if the environment variable FINCH_WINOGRAD_TILE=2 restricts the kernels to F(2 × 2, 3 × 3), to compare both.
/// Throws ConfigError if the variable is neither 2 nor 4.
[[nodiscard]] bool may_use_large_tiles();
/// True if the shape can be part of a chain of convolutions in planes, and is then faster than in NHWC.
[[nodiscard]] bool prefers_planes(const ConvolutionShape& shape);

/// Returns a convolution of one kind. Returns null if another implementation is faster for this shape, or if the
/// kernels do not support it.
[[nodiscard]] std::unique_ptr<Operation> make_channels_convolution(const ConvolutionShape& shape);
[[nodiscard]] std::unique_ptr<Operation> make_planes_convolution(const ConvolutionShape& shape);

/// The memory of one thread in floats. The operations share the scratch memory.
struct OwnMemory {
    std::int64_t kept = 0;  ///< packed weights for both directions, and the sums of the gradients
    std::int64_t scratch = 0;
};
/// Returns the memory of a convolution of one kind; std::nullopt if it would not be made.
[[nodiscard]] std::optional<OwnMemory> channels_memory(const ConvolutionShape& shape);
[[nodiscard]] std::optional<OwnMemory> planes_memory(const ConvolutionShape& shape);

}  // namespace finch::backend::cpu
