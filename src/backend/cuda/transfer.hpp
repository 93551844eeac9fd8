#pragma once

#include "finch/backend/transfer.hpp"

#include <cstddef>
#include <cuda_runtime.h>
#include <memory>

namespace finch::backend::cuda {

/// Returns a transfer that is ordered with the work of `stream`. `stream` must outlive the transfer. Throws
/// std::bad_alloc.
[[nodiscard]] std::unique_ptr<Transfer> make_transfer(cudaStream_t stream, std::size_t floats);

}  // namespace finch::backend::cuda
