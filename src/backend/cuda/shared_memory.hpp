#pragma once

#include <cstddef>
#include <cuda_runtime.h>

namespace finch::backend::cuda {

/// Lets a kernel have `bytes` of dynamic shared memory: nothing up to 48 KiB; more must be asked for, and is asked for
/// up to the device's maximum at once. It never lowers a limit: the nodes of a graph are checked against it when the
/// graph is instantiated, and another layer's kernel may be the same function with more shared memory.
[[nodiscard]] cudaError_t allow_shared_memory(const void* kernel, std::size_t bytes);

}  // namespace finch::backend::cuda
