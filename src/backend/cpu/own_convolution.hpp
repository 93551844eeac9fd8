#pragma once

#include "finch/backend/operation.hpp"

#include <memory>

namespace finch::backend::cpu {

/// Returns a 3 × 3 convolution by Finch's own kernels with channels along the vectors (ChannelsKernels). Returns null
/// if another implementation is faster for this shape, or if the kernels do not support it.
[[nodiscard]] std::unique_ptr<Operation> make_channels_convolution(const ConvolutionShape& shape);
/// Like make_channels_convolution(), with tiles along the vectors (PlanesKernels), for few channels.
[[nodiscard]] std::unique_ptr<Operation> make_planes_convolution(const ConvolutionShape& shape);

}  // namespace finch::backend::cpu
