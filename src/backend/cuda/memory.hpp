#pragma once

#include "finch/backend/cuda_runtime.hpp"

#include <cstddef>
#include <map>
#include <memory>

namespace finch::backend::cuda {

struct MemoryPoolTraits {
    using type = cudaMemPool_t;
    static type null() noexcept { return nullptr; }
    static void destroy(type pool) noexcept;
};

/// The memory that all streams of a device take theirs from. cudaFree waits for the whole device; what is freed here
/// goes back in the order of its stream, so an individual that ends waits for no other. Between individuals the pool
/// keeps at most half of the device's memory. On a device without memory pools it is cudaMalloc and cudaFree.
class MemoryPool {
public:
    explicit MemoryPool(int device);

    /// In the order of `stream`. Throws std::bad_alloc.
    [[nodiscard]] void* allocate(std::size_t bytes, cudaStream_t stream);
    void free(void* memory, cudaStream_t stream) noexcept;
    /// What the pool keeps although it is unused, which cudaMemGetInfo does not count as free.
    [[nodiscard]] std::size_t unused_bytes() const;
    /// Gives that back to the device, for what is allocated outside of the pool.
    void trim();

private:
    UniqueHandle<MemoryPoolTraits> pool_;  ///< null: the device has none
};

/// A stream and the pool that its memory comes from.
struct StreamAndPool {
    UniqueStream stream;
    std::shared_ptr<MemoryPool> pool;
};

/// Memory of a MemoryPool, to be used on its stream, or by what waits for that. Move-only.
class StreamMemory {
public:
    StreamMemory() = default;
    /// Not zeroed. Throws std::bad_alloc.
    StreamMemory(std::shared_ptr<const StreamAndPool> of, std::size_t bytes);
    StreamMemory(StreamMemory&& other) noexcept;
    StreamMemory& operator=(StreamMemory&& other) noexcept;
    StreamMemory(const StreamMemory&) = delete;
    StreamMemory& operator=(const StreamMemory&) = delete;
    ~StreamMemory();

    [[nodiscard]] void* get() const noexcept { return memory_; }
    [[nodiscard]] explicit operator bool() const noexcept { return memory_ != nullptr; }

private:
    std::shared_ptr<const StreamAndPool> of_;
    void* memory_ = nullptr;
};

class PinnedPool;

/// Pinned host memory of a PinnedPool. Move-only. Nothing may be copied from or to it any more when it is destroyed.
class PinnedPiece {
public:
    PinnedPiece() = default;
    PinnedPiece(std::shared_ptr<PinnedPool> pool, std::size_t bytes, PinnedMemory memory);
    PinnedPiece(PinnedPiece&&) = default;
    PinnedPiece& operator=(PinnedPiece&&) = default;
    PinnedPiece(const PinnedPiece&) = delete;
    PinnedPiece& operator=(const PinnedPiece&) = delete;
    ~PinnedPiece();

    [[nodiscard]] void* get() const noexcept { return memory_.get(); }

private:
    std::shared_ptr<PinnedPool> pool_;
    std::size_t bytes_ = 0;
    PinnedMemory memory_;
};

/// Pinned host memory that is used again: cudaFreeHost waits for the whole device too. Sizes are rounded up to powers
/// of two, so it keeps at most twice what was in use at once.
class PinnedPool : public std::enable_shared_from_this<PinnedPool> {
public:
    /// Throws std::bad_alloc.
    [[nodiscard]] PinnedPiece take(std::size_t bytes);
    void give_back(std::size_t bytes, PinnedMemory memory);

private:
    std::multimap<std::size_t, PinnedMemory> idle_;  ///< by size
};

}  // namespace finch::backend::cuda
