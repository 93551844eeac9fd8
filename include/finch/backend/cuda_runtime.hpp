#pragma once

#include "finch/base/error.hpp"
#include "finch/base/handle.hpp"

#include <cstddef>
#include <cuda_runtime.h>
#include <source_location>

namespace finch::backend::cuda {

/// Does nothing if `code` is cudaSuccess. Otherwise throws std::bad_alloc if memory is exhausted, or ApiError with the
/// text of the call and CUDA's error message. Resets CUDA's last error, so that the next check does not report the same
/// error again.
void check(cudaError_t code, const char* call, std::source_location where);
#define FINCH_CUDA(call) ::finch::backend::cuda::check((call), #call, std::source_location::current())

/// Sets the environment variable CUDA_DEVICE_MAX_CONNECTIONS to 32, the maximum number of hardware queues (CUDA's
/// default is 8), so that concurrent trainings (slots) do not wait for each other. Call ask_for_queues() before the
/// first CUDA call, because CUDA reads the variable only once. Keeps the value of the variable if the user has set it.
void ask_for_queues();

// These functions log errors.
void destroy_stream(cudaStream_t stream) noexcept;
void destroy_event(cudaEvent_t event) noexcept;
void destroy_graph(cudaGraph_t graph) noexcept;
void destroy_graph_exec(cudaGraphExec_t graph) noexcept;
void free_device(void* memory) noexcept;
void free_pinned(void* memory) noexcept;
using UniqueStream = UniqueHandle<PointerTraits<cudaStream_t, destroy_stream>>;
using UniqueEvent = UniqueHandle<PointerTraits<cudaEvent_t, destroy_event>>;
using UniqueGraph = UniqueHandle<PointerTraits<cudaGraph_t, destroy_graph>>;
using UniqueGraphExec = UniqueHandle<PointerTraits<cudaGraphExec_t, destroy_graph_exec>>;
using DeviceMemory = UniqueHandle<PointerTraits<void*, free_device>>;
using PinnedMemory = UniqueHandle<PointerTraits<void*, free_pinned>>;

/// Logs a warning if `call` failed, and resets CUDA's last error. Destructors and other code that cannot throw use this
/// function.
void log_failure(cudaError_t code, const char* call) noexcept;

/// Allocates device memory, not zeroed. Throws std::bad_alloc.
[[nodiscard]] DeviceMemory allocate_device(std::size_t bytes);
/// Allocates pinned host memory, which the device reads and writes by DMA. Throws std::bad_alloc.
[[nodiscard]] PinnedMemory allocate_pinned(std::size_t bytes);
[[nodiscard]] UniqueStream make_stream();  ///< does not synchronize with the default stream
/// With `cudaEventDefault`, the event measures time.
[[nodiscard]] UniqueEvent make_event(unsigned flags = cudaEventDisableTiming);

}  // namespace finch::backend::cuda
