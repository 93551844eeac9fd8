#pragma once

#include <cstddef>
#include <cuda_runtime.h>

namespace finch::backend::cuda {

/// Allows a kernel to use `bytes` of dynamic shared memory. Up to 48 KiB need no request to CUDA. For more than 48 KiB,
/// the kernel's limit is raised to the device's maximum. The limit is never lowered. CUDA checks the nodes of a graph
/// against the limit when the graph is instantiated. The kernel of another layer may be the same function with more
/// shared memory.
[[nodiscard]] cudaError_t allow_shared_memory(const void* kernel, std::size_t bytes);

}  // namespace finch::backend::cuda
