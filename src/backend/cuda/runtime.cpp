#include "finch/backend/cuda_runtime.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"

#include <cstdlib>
#include <new>

namespace finch::backend::cuda {
void log_failure(cudaError_t code, const char* call) noexcept {
    // A driver that is shutting down has already freed everything.
    if (code != cudaSuccess && code != cudaErrorCudartUnloading) {
        spdlog::warn("{}: {}", call, cudaGetErrorString(code));
        static_cast<void>(cudaGetLastError());
    }
}

void check(cudaError_t code, const char* call, std::source_location where) {
    if (code == cudaSuccess) {
        return;
    }
    static_cast<void>(cudaGetLastError());  // so that the next check does not report this error
    if (code == cudaErrorMemoryAllocation) {
        throw std::bad_alloc();
    }
    throw ApiError(fmt::format("{}:{}: {}: {} ({})", where.file_name(), where.line(), call, cudaGetErrorString(code),
                               cudaGetErrorName(code)));
}

void ask_for_queues() {
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

void StreamTraits::destroy(type stream) noexcept {
    log_failure(cudaStreamDestroy(stream), "cudaStreamDestroy");
}
void EventTraits::destroy(type event) noexcept {
    log_failure(cudaEventDestroy(event), "cudaEventDestroy");
}
void GraphTraits::destroy(type graph) noexcept {
    log_failure(cudaGraphDestroy(graph), "cudaGraphDestroy");
}
void GraphExecTraits::destroy(type graph) noexcept {
    log_failure(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
}
void DeviceMemoryTraits::destroy(type memory) noexcept {
    log_failure(cudaFree(memory), "cudaFree");
}
void PinnedMemoryTraits::destroy(type memory) noexcept {
    log_failure(cudaFreeHost(memory), "cudaFreeHost");
}

DeviceMemory allocate_device(std::size_t bytes) {
    void* memory = nullptr;
    FINCH_CUDA(cudaMalloc(&memory, bytes));
    return DeviceMemory(memory);
}

PinnedMemory allocate_pinned(std::size_t bytes) {
    void* memory = nullptr;
    FINCH_CUDA(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
    return PinnedMemory(memory);
}

UniqueStream make_stream() {
    cudaStream_t stream = nullptr;
    FINCH_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return UniqueStream(stream);
}

UniqueEvent make_event() {
    cudaEvent_t event = nullptr;
    FINCH_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return UniqueEvent(event);
}

UniqueEvent make_timer() {
    cudaEvent_t event = nullptr;
    FINCH_CUDA(cudaEventCreateWithFlags(&event, cudaEventDefault));
    return UniqueEvent(event);
}

}  // namespace finch::backend::cuda
