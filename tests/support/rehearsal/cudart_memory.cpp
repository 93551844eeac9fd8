// Replaces the CUDA runtime in tests: memory. Device memory is host memory that is registered separately, surrounded by
// red zones and initialised with NaN. Copies are refused if the memory is not of the kind that the call states.
#include "support/rehearsal/kernel_entry.hpp"
#include "support/rehearsal/machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace finch::rehearsal {
namespace {

constexpr std::size_t zone = 256;  ///< bytes of a red zone (one on each side), and the alignment
constexpr unsigned char zone_byte = 0xA5;

std::size_t total(const Pieces& pieces) {
    std::size_t sum = 0;
    for (const auto& [address, bytes] : pieces) {
        sum += bytes;
    }
    return sum;
}

/// Returns new memory that is filled with NaN.
void* take(Pieces& pieces, std::size_t bytes) {
    auto* whole = static_cast<unsigned char*>(std::aligned_alloc(zone, (bytes + 3 * zone - 1) / zone * zone));
    std::memset(whole, zone_byte, zone);
    std::memset(whole + zone, 0xff, bytes);
    std::memset(whole + zone + bytes, zone_byte, zone);
    pieces[whole + zone] = bytes;
    return whole + zone;
}

cudaError_t give_back(Pieces& pieces, void* address) {
    if (address == nullptr) {
        return cudaSuccess;
    }
    const auto found = pieces.find(static_cast<const unsigned char*>(address));
    if (found == pieces.end()) {
        return remember(cudaErrorInvalidValue);
    }
    auto* first = static_cast<unsigned char*>(address);
    const auto intact = [](unsigned char byte) { return byte == zone_byte; };
    if (!std::all_of(first - zone, first, intact) ||
        !std::all_of(first + found->second, first + found->second + zone, intact)) {
        fault("something was written outside of its memory");
    }
    pieces.erase(found);
    std::free(first - zone);
    return cudaSuccess;
}

std::size_t free_bytes() {
    return machine().memory - std::min(machine().memory, device_bytes_in_use() + idle_pool_bytes());
}

/// Copies pageable host memory like CUDA. A copy to the device is staged and happens later. A copy from the device
/// waits for the stream.
void copy_pageable(void* to, const void* from, std::size_t bytes, bool to_device, cudaStream_t stream) {
    if (to_device) {
        const auto* first = static_cast<const unsigned char*>(from);
        submit(stream, [to, staged = std::vector<unsigned char>(first, first + bytes)] {
            std::memcpy(to, staged.data(), staged.size());
        });
    } else {
        drain(stream);
        std::memcpy(to, from, bytes);
    }
}

}  // namespace

bool holds(const Pieces& pieces, const void* address, std::size_t bytes) {
    const auto* first = static_cast<const unsigned char*>(address);
    auto after = pieces.upper_bound(first);
    if (after == pieces.begin()) {
        return false;
    }
    --after;
    return first + bytes <= after->first + after->second;
}

std::size_t device_bytes_in_use() {
    return total(machine().device_memory);
}
std::size_t pinned_bytes_in_use() {
    return total(machine().pinned_memory);
}
std::size_t idle_pool_bytes() {
    std::size_t bytes = 0;
    for (const cudaMemPool_t pool : machine().pools) {
        bytes += pool->reserved - pool->used;
    }
    return bytes;
}
void release_pools() {
    for (const cudaMemPool_t pool : machine().pools) {
        pool->reserved = std::max(pool->used, std::min<std::size_t>(pool->reserved, pool->threshold));
    }
}
bool is_device_memory(const void* memory, std::size_t bytes) {
    return holds(machine().device_memory, memory, bytes);
}

}  // namespace finch::rehearsal

using namespace finch::rehearsal;

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
    REHEARSE(cudaMalloc);
    if (machine().capture) {
        return refuse_in_capture();
    }
    if (bytes > free_bytes()) {
        return remember(cudaErrorMemoryAllocation);
    }
    *memory = take(machine().device_memory, bytes);
    return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
    REHEARSE(cudaFree);
    if (machine().capture) {
        return refuse_in_capture();
    }
    if (machine().pooled.contains(static_cast<const unsigned char*>(memory))) {
        return remember(cudaErrorInvalidValue);  // CUDA allows this call, but Finch does not need it
    }
    drain_all();  // as in CUDA
    return give_back(machine().device_memory, memory);
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
    REHEARSE(cudaHostAlloc);
    if (machine().capture) {
        return refuse_in_capture();
    }
    *memory = take(machine().pinned_memory, bytes);
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
    REHEARSE(cudaFreeHost);
    if (machine().capture) {
        return refuse_in_capture();
    }
    drain_all();
    return give_back(machine().pinned_memory, memory);
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total_bytes) {
    REHEARSE(cudaMemGetInfo);
    *total_bytes = machine().memory;
    *free = free_bytes();
    return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
    REHEARSE(cudaMemPoolCreate);
    if (!machine().has_pools || properties->allocType != cudaMemAllocationTypePinned ||
        properties->location.type != cudaMemLocationTypeDevice) {
        return remember(cudaErrorNotSupported);
    }
    *pool = new CUmemPoolHandle_st;
    machine().pools.insert(*pool);
    return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    REHEARSE(cudaMemPoolDestroy);
    drain_all();
    machine().pools.erase(pool);
    delete pool;
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void* value) {
    REHEARSE(cudaMemPoolSetAttribute);
    if (which != cudaMemPoolAttrReleaseThreshold) {
        return remember(cudaErrorInvalidValue);
    }
    std::memcpy(&pool->threshold, value, sizeof pool->threshold);
    return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void* value) {
    REHEARSE(cudaMemPoolGetAttribute);
    if (which != cudaMemPoolAttrUsedMemCurrent && which != cudaMemPoolAttrReservedMemCurrent) {
        return remember(cudaErrorInvalidValue);
    }
    const std::uint64_t bytes = which == cudaMemPoolAttrUsedMemCurrent ? pool->used : pool->reserved;
    std::memcpy(value, &bytes, sizeof bytes);
    return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t kept) {
    REHEARSE(cudaMemPoolTrimTo);
    pool->reserved = std::max(pool->used, std::min(pool->reserved, kept));
    return cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void** memory, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    REHEARSE(cudaMallocFromPoolAsync);
    if (machine().capture) {
        return refuse_in_capture();  // CUDA would add a graph node, which Finch does not want
    }
    const auto lacks = [&] {
        return pool->used + bytes > pool->reserved && pool->used + bytes - pool->reserved > free_bytes();
    };
    if (lacks()) {
        drain(stream);  // completes earlier stream-ordered frees
    }
    if (lacks()) {
        return remember(cudaErrorMemoryAllocation);
    }
    pool->used += bytes;
    pool->reserved = std::max(pool->reserved, pool->used);
    *memory = take(machine().device_memory, bytes);
    machine().pooled[static_cast<const unsigned char*>(*memory)] = pool;
    return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
    REHEARSE(cudaFreeAsync);
    if (machine().capture) {
        return refuse_in_capture();
    }
    const auto found = machine().pooled.find(static_cast<const unsigned char*>(memory));
    if (found == machine().pooled.end()) {
        return remember(cudaErrorInvalidValue);
    }
    const cudaMemPool_t pool = found->second;
    machine().pooled.erase(found);
    submit(stream, [pool, memory] {
        pool->used -= machine().device_memory.at(static_cast<const unsigned char*>(memory));
        static_cast<void>(give_back(machine().device_memory, memory));
    });
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    REHEARSE(cudaMemcpyAsync);
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (bytes == 0) {
        return cudaSuccess;
    }
    if (to_device != is_device_memory(to, bytes) || from_device != is_device_memory(from, bytes)) {
        return remember(cudaErrorInvalidValue);
    }
    const void* host = to_device && from_device ? nullptr : to_device ? from : to;
    if (host == nullptr || holds(machine().pinned_memory, host, bytes)) {
        submit(stream, [=] { std::memcpy(to, from, bytes); });
        return cudaSuccess;
    }
    if (is_capturing(stream)) {
        return refuse_in_capture();
    }
    copy_pageable(to, from, bytes, to_device, stream);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
    REHEARSE(cudaMemsetAsync);
    if (bytes > 0 && !is_device_memory(to, bytes)) {
        return remember(cudaErrorInvalidValue);
    }
    submit(stream, [=] { std::memset(to, value, bytes); });
    return cudaSuccess;
}

}  // extern "C"
