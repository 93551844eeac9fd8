#pragma once

#include "finch/base/error.hpp"
#include "finch/base/handle.hpp"

#include <cstddef>
#include <cuda_runtime.h>
#include <source_location>

namespace finch::backend::cuda {

/// Throws ApiError with the call's text and CUDA's words unless `code` is cudaSuccess; std::bad_alloc where memory is
/// what lacks (and CUDA's memory of that error is cleared, so that the next call is not blamed for it).
void check(cudaError_t code, const char* call, std::source_location where);
#define FINCH_CUDA(call) ::finch::backend::cuda::check((call), #call, std::source_location::current())

/// To be called before the first call of CUDA, which reads CUDA_DEVICE_MAX_CONNECTIONS once: as many hardware queues as
/// there are (its own default is 8), so that slots do not wait for each other. What the user has set stays.
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

/// For what cannot throw: warns unless `call` succeeded, and forgets the error.
void log_failure(cudaError_t code, const char* call) noexcept;

/// Device memory, not zeroed. Throws std::bad_alloc.
[[nodiscard]] DeviceMemory allocate_device(std::size_t bytes);
/// Host memory that the device copies from and to by itself. Throws std::bad_alloc.
[[nodiscard]] PinnedMemory allocate_pinned(std::size_t bytes);
[[nodiscard]] UniqueStream make_stream();  ///< does not wait for the default stream
[[nodiscard]] UniqueEvent make_event();    ///< without time; see make_timer()
[[nodiscard]] UniqueEvent make_timer();    ///< with time

}  // namespace finch::backend::cuda
