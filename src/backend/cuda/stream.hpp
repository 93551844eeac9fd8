#pragma once

#include "finch/backend/cuda_runtime.hpp"
#include "finch/backend/operation.hpp"

#include "memory.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace finch::backend::cuda {

/// What the rules that choose kernels ask of a GPU.
struct DeviceFacts {
    int index = 0;
    std::string name;  ///< "NVIDIA H200"
    int multiprocessors = 1;
    int capability = 0;                 ///< 10 · major + minor: 90 for Hopper
    std::size_t shared_bytes_most = 0;  ///< of one block, when asked for
};

class Libraries;     ///< cuDNN's and cuBLASLt's handles (libraries.hpp)
class Plans;         ///< library plans by shape (libraries.hpp)
class ResidentSets;  ///< data sets in the device's memory (resident_images.hpp)

/// What all lines of work of one device share.
struct Shared {
    DeviceFacts facts;
    std::unique_ptr<Libraries> libraries;
    std::unique_ptr<Plans> plans;
    std::unique_ptr<ResidentSets> sets;
    std::shared_ptr<MemoryPool> pool;
    std::shared_ptr<PinnedPool> pinned;
    explicit Shared(const DeviceFacts& of);
    ~Shared();
};

/// Memory that the operations of a stream may use as they like within one call: they run one after another, so all
/// share it. It grows with what they ask for, and goes with the last of them.
class Scratch {
public:
    [[nodiscard]] void* get() const noexcept { return memory_.get(); }

private:
    friend class Stream;
    StreamMemory memory_;
    std::size_t bytes_ = 0;
    bool is_captured_ = false;            ///< a graph knows where it lies
    std::vector<StreamMemory> captured_;  ///< smaller ones that graphs know
};

/// One line of work on a GPU, and what its operations share. Its operations must not outlive it.
class Stream {
public:
    explicit Stream(std::shared_ptr<Shared> shared);
    ~Stream();  ///< waits until everything is done
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    [[nodiscard]] cudaStream_t get() const noexcept { return own_->stream.get(); }
    [[nodiscard]] const DeviceFacts& facts() const noexcept { return shared_->facts; }
    [[nodiscard]] Libraries& libraries() const noexcept { return *shared_->libraries; }
    [[nodiscard]] Plans& plans() const noexcept { return *shared_->plans; }
    [[nodiscard]] const std::shared_ptr<Shared>& shared() const noexcept { return shared_; }

    /// Zeroed memory of the device. Throws std::bad_alloc.
    [[nodiscard]] StreamMemory allocate(std::size_t bytes);
    /// Pinned host memory, not zeroed. Throws std::bad_alloc.
    [[nodiscard]] PinnedPiece allocate_pinned(std::size_t bytes);
    /// Scratch memory of at least `bytes`, for an operation that keeps it as long as it lives and asks it where it lies
    /// at each call. What is too small is freed at once, unless a graph knows it. Throws std::bad_alloc.
    [[nodiscard]] std::shared_ptr<const Scratch> scratch(std::size_t bytes);
    /// To be called when work on this stream has been captured: the scratch memory stays where it is.
    void keep_scratch();
    /// Bytes that allocate() can still give, about.
    [[nodiscard]] std::size_t free_bytes() const;

private:
    std::shared_ptr<Shared> shared_;
    std::shared_ptr<const StreamAndPool> own_;
    std::weak_ptr<Scratch> scratch_;
};

}  // namespace finch::backend::cuda
