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

struct StreamTraits {
    using type = cudaStream_t;
    static type null() noexcept { return nullptr; }
    static void destroy(type stream) noexcept;
};
using UniqueStream = UniqueHandle<StreamTraits>;

struct EventTraits {
    using type = cudaEvent_t;
    static type null() noexcept { return nullptr; }
    static void destroy(type event) noexcept;
};
using UniqueEvent = UniqueHandle<EventTraits>;

struct GraphTraits {
    using type = cudaGraph_t;
    static type null() noexcept { return nullptr; }
    static void destroy(type graph) noexcept;
};
using UniqueGraph = UniqueHandle<GraphTraits>;

struct GraphExecTraits {
    using type = cudaGraphExec_t;
    static type null() noexcept { return nullptr; }
    static void destroy(type graph) noexcept;
};
using UniqueGraphExec = UniqueHandle<GraphExecTraits>;

struct DeviceMemoryTraits {
    using type = void*;
    static type null() noexcept { return nullptr; }
    static void destroy(type memory) noexcept;  ///< cudaFree
};
using DeviceMemory = UniqueHandle<DeviceMemoryTraits>;

struct PinnedMemoryTraits {
    using type = void*;
    static type null() noexcept { return nullptr; }
    static void destroy(type memory) noexcept;  ///< cudaFreeHost
};
using PinnedMemory = UniqueHandle<PinnedMemoryTraits>;

/// Logs a warning if `call` failed, and resets CUDA's last error. Destructors and other code that cannot throw use this
/// function.
void log_failure(cudaError_t code, const char* call) noexcept;

/// Allocates device memory, not zeroed. Throws std::bad_alloc.
[[nodiscard]] DeviceMemory allocate_device(std::size_t bytes);
/// Allocates pinned host memory, which the device reads and writes by DMA. Throws std::bad_alloc.
[[nodiscard]] PinnedMemory allocate_pinned(std::size_t bytes);
[[nodiscard]] UniqueStream make_stream();  ///< does not synchronize with the default stream
[[nodiscard]] UniqueEvent make_event();    ///< timing disabled; see make_timer()
[[nodiscard]] UniqueEvent make_timer();    ///< timing enabled

}  // namespace finch::backend::cuda
