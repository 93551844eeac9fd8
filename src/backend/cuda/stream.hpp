#pragma once

#include "finch/backend/cuda_runtime.hpp"
#include "finch/backend/operation.hpp"

#include "deferred.hpp"
#include "memory.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace finch::backend::cuda {

/// The properties of a GPU that decide which kernels are used.
struct DeviceFacts {
    int index = 0;
    std::string name;  ///< "NVIDIA H200"
    int multiprocessors = 1;
    int capability = 0;                 ///< 10 · major + minor: 90 for Hopper
    std::size_t shared_bytes_most = 0;  ///< maximum per block, with an explicit request
    int ranks = 1;                      ///< of this run that use the device
    bool can_cooperate = false;         ///< supports Cooperative kernels (grid.hpp)
};

class Libraries;     ///< cuDNN's and cuBLASLt's handles and plans (libraries.hpp)
class ResidentSets;  ///< data sets in the device's memory (resident_images.hpp)
class Gangs;         ///< steps that run together (gang.hpp)
class Stream;

/// State that all streams of one device share.
struct Shared {
    DeviceFacts facts;
    std::unique_ptr<Libraries> libraries;
    std::unique_ptr<ResidentSets> sets;
    std::unique_ptr<Gangs> gangs;
    std::shared_ptr<MemoryPool> pool;
    std::shared_ptr<PinnedPool> pinned;
    const Stream* cooperating = nullptr;  ///< the stream that may launch Cooperative kernels
    explicit Shared(const DeviceFacts& of);
    ~Shared();
};

/// Scratch memory for the operations of a stream. Each operation may use the memory within one call. Operations run one
/// after another, so all of them share the memory. The memory grows to the largest request and is freed with the last
/// operation.
class Scratch {
public:
    [[nodiscard]] void* get() const noexcept { return memory_.get(); }

private:
    friend class Stream;
    StreamMemory memory_;
    std::size_t bytes_ = 0;
    bool is_captured_ = false;            ///< a graph refers to its address
    std::vector<StreamMemory> captured_;  ///< smaller memory that graphs refer to
};

/// A stream on a GPU and the state that its operations share. The operations must not outlive the stream.
class Stream {
public:
    explicit Stream(std::shared_ptr<Shared> shared);
    ~Stream();  ///< waits until all work is done
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    /// Returns the CUDA stream, to enqueue work on it. First calls the function of launch_before_next(), if any. Call
    /// get() anew before work outside a captured step: steps that wait would be overtaken by work on a kept
    /// cudaStream_t.
    [[nodiscard]] cudaStream_t get() const;
    /// Makes the next get() call `launch`, once. Replaces an earlier function; an empty one cancels it.
    void launch_before_next(std::function<void()> launch) { launch_before_next_ = std::move(launch); }
    [[nodiscard]] const DeviceFacts& facts() const noexcept { return shared_->facts; }
    [[nodiscard]] Libraries& libraries() const noexcept { return *shared_->libraries; }
    [[nodiscard]] const std::shared_ptr<Shared>& shared() const noexcept { return shared_; }

    /// Allocates zeroed device memory. Throws std::bad_alloc.
    [[nodiscard]] StreamMemory allocate(std::size_t bytes);
    /// Allocates pinned host memory, not zeroed. Throws std::bad_alloc.
    [[nodiscard]] PinnedPiece allocate_pinned(std::size_t bytes);
    /// Returns scratch memory of at least `bytes`. An operation keeps the Scratch object for its lifetime and calls
    /// get() in each call, because the address may change. Memory that is too small is freed immediately, unless a
    /// graph refers to it. Throws std::bad_alloc.
    [[nodiscard]] std::shared_ptr<const Scratch> scratch(std::size_t bytes);
    /// Keeps the scratch memory at its current address. Call keep_scratch() after work on this stream was captured.
    void keep_scratch();
    /// The work that finish_deferred() will enqueue (operations.hpp).
    [[nodiscard]] Deferred& deferred() noexcept { return deferred_; }
    /// Returns whether this stream may launch Cooperative kernels (grid.hpp): the first one that asks, if the device
    /// supports them and no other rank uses it.
    [[nodiscard]] bool may_cooperate();
    /// Returns approximately how many bytes allocate() can still provide.
    [[nodiscard]] std::size_t free_bytes() const;

private:
    std::shared_ptr<Shared> shared_;
    std::shared_ptr<const StreamAndPool> own_;
    std::weak_ptr<Scratch> scratch_;
    Deferred deferred_;
    mutable std::function<void()> launch_before_next_;
};

}  // namespace finch::backend::cuda
