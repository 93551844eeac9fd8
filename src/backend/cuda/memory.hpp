#pragma once

#include "finch/backend/cuda_runtime.hpp"

#include <cstddef>
#include <map>
#include <memory>

namespace finch::backend::cuda {

void destroy_pool(cudaMemPool_t pool) noexcept;  ///< logs an error

/// The memory pool of all streams of a device. Calls of cudaFree would wait for the whole device. The pool frees memory
/// in stream order, so that an individual that ends does not wait for others. Between individuals the pools of all
/// `ranks` on the device keep at most half of its memory. On a device without memory pools, cudaMalloc and cudaFree are
/// used.
class MemoryPool {
public:
    MemoryPool(int device, int ranks);

    /// Allocates memory in the order of `stream`. Throws std::bad_alloc.
    [[nodiscard]] void* allocate(std::size_t bytes, cudaStream_t stream);
    void free(void* memory, cudaStream_t stream) noexcept;
    /// Returns the unused bytes that the pool keeps. The unused bytes are not part of the free memory that
    /// cudaMemGetInfo reports.
    [[nodiscard]] std::size_t unused_bytes() const;
    /// Returns the unused memory to the device, for allocations outside the pool.
    void trim();

private:
    UniqueHandle<PointerTraits<cudaMemPool_t, destroy_pool>> pool_;  ///< null: the device has none
};

/// A stream and the pool that its memory is allocated from.
struct StreamAndPool {
    UniqueStream stream;
    std::shared_ptr<MemoryPool> pool;
};

/// Frees memory of a StreamAndPool in the order of the stream.
struct FreeOnStream {
    std::shared_ptr<const StreamAndPool> of;
    void operator()(void* memory) const noexcept { of->pool->free(memory, of->stream.get()); }
};
/// Memory of a MemoryPool. Only its stream, or work that waits for its stream, may use it.
using StreamMemory = std::unique_ptr<void, FreeOnStream>;

class PinnedPool;

/// Returns memory to a PinnedPool.
struct GiveBack {
    std::shared_ptr<PinnedPool> pool;
    std::size_t bytes = 0;
    void operator()(void* memory) const noexcept;
};
/// Pinned host memory of a PinnedPool. All copies from and to this memory must be complete before it is destroyed.
using PinnedPiece = std::unique_ptr<void, GiveBack>;

/// A pool of pinned host memory for reuse: cudaFreeHost would wait for the whole device. Sizes are rounded up to powers
/// of two, so the pool keeps at most twice the memory that was in use at the same time.
class PinnedPool : public std::enable_shared_from_this<PinnedPool> {
public:
    /// Throws std::bad_alloc.
    [[nodiscard]] PinnedPiece take(std::size_t bytes);
    void give_back(std::size_t bytes, PinnedMemory memory);

private:
    std::multimap<std::size_t, PinnedMemory> idle_;  ///< by size
};

}  // namespace finch::backend::cuda
