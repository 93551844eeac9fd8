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

void destroy_stream(cudaStream_t stream) noexcept {
    log_failure(cudaStreamDestroy(stream), "cudaStreamDestroy");
}
void destroy_event(cudaEvent_t event) noexcept {
    log_failure(cudaEventDestroy(event), "cudaEventDestroy");
}
void destroy_graph(cudaGraph_t graph) noexcept {
    log_failure(cudaGraphDestroy(graph), "cudaGraphDestroy");
}
void destroy_graph_exec(cudaGraphExec_t graph) noexcept {
    log_failure(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
}
void free_device(void* memory) noexcept {
    log_failure(cudaFree(memory), "cudaFree");
}
void free_pinned(void* memory) noexcept {
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

UniqueEvent make_event(unsigned flags) {
    cudaEvent_t event = nullptr;
    FINCH_CUDA(cudaEventCreateWithFlags(&event, flags));
    return UniqueEvent(event);
}

}  // namespace finch::backend::cuda
