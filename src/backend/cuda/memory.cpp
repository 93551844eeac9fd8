#include "memory.hpp"

#include "finch/base/log.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace finch::backend::cuda {
namespace {

constexpr std::size_t smallest_pinned = 4096;

std::uint64_t attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
    std::uint64_t value = 0;
    FINCH_CUDA(cudaMemPoolGetAttribute(pool, which, &value));
    return value;
}

}  // namespace

void destroy_pool(cudaMemPool_t pool) noexcept {
    log_failure(cudaMemPoolDestroy(pool), "cudaMemPoolDestroy");
}

MemoryPool::MemoryPool(int device, int ranks) {
    int has_pools = 0;
    FINCH_CUDA(cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, device));
    if (has_pools == 0) {
        spdlog::debug("cuda:{} has no memory pools: cudaMalloc serves", device);
        return;
    }
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    cudaMemPool_t pool = nullptr;
    FINCH_CUDA(cudaMemPoolCreate(&pool, &properties));
    pool_.reset(pool);
    std::size_t free = 0;
    std::size_t total = 0;
    FINCH_CUDA(cudaMemGetInfo(&free, &total));
    std::uint64_t kept = total / 2 / static_cast<std::size_t>(ranks);
    FINCH_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept));
}

void* MemoryPool::allocate(std::size_t bytes, cudaStream_t stream) {
    bytes = std::max<std::size_t>(bytes, 1);
    if (!pool_) {
        return allocate_device(bytes).release();
    }
    void* memory = nullptr;
    FINCH_CUDA(cudaMallocFromPoolAsync(&memory, bytes, pool_.get(), stream));
    return memory;
}

void MemoryPool::free(void* memory, cudaStream_t stream) noexcept {
    if (pool_) {
        log_failure(cudaFreeAsync(memory, stream), "cudaFreeAsync");
    } else {
        const DeviceMemory freed(memory);
    }
}

std::size_t MemoryPool::unused_bytes() const {
    if (!pool_) {
        return 0;
    }
    const std::uint64_t used = attribute(pool_.get(), cudaMemPoolAttrUsedMemCurrent);
    const std::uint64_t reserved = attribute(pool_.get(), cudaMemPoolAttrReservedMemCurrent);
    return static_cast<std::size_t>(reserved - std::min(reserved, used));
}

void MemoryPool::trim() {
    if (pool_) {
        FINCH_CUDA(cudaMemPoolTrimTo(pool_.get(), 0));
    }
}

void GiveBack::operator()(void* memory) const noexcept {
    pool->give_back(bytes, PinnedMemory(memory));
}

PinnedPiece PinnedPool::take(std::size_t bytes) {
    const std::size_t rounded = std::bit_ceil(std::max(bytes, smallest_pinned));
    if (auto idle = idle_.extract(rounded)) {
        return {idle.mapped().release(), {shared_from_this(), rounded}};
    }
    return {allocate_pinned(rounded).release(), {shared_from_this(), rounded}};
}

void PinnedPool::give_back(std::size_t bytes, PinnedMemory memory) {
    idle_.emplace(bytes, std::move(memory));
}

}  // namespace finch::backend::cuda
