#pragma once

#include "finch/backend/operation.hpp"

#include "runtime.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
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
    explicit Shared(const DeviceFacts& of);
    ~Shared();
};

/// One line of work on a GPU, and what its operations share. Its operations must not outlive it.
class Stream {
public:
    explicit Stream(std::shared_ptr<Shared> shared);
    ~Stream();  ///< waits until everything is done
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    [[nodiscard]] cudaStream_t get() const noexcept { return stream_.get(); }
    [[nodiscard]] const DeviceFacts& facts() const noexcept { return shared_->facts; }
    [[nodiscard]] Libraries& libraries() const noexcept { return *shared_->libraries; }
    [[nodiscard]] Plans& plans() const noexcept { return *shared_->plans; }
    [[nodiscard]] const std::shared_ptr<Shared>& shared() const noexcept { return shared_; }

    /// Zeroed memory of the device. Throws std::bad_alloc.
    [[nodiscard]] DeviceMemory allocate(std::size_t bytes);
    /// Memory of at least `bytes` that an operation may use as it likes within one call: operations of a stream run one
    /// after another, so all share it. Asked for once, when the operation is made; it stays where it is as long as the
    /// stream lives, since graphs keep its address. Throws std::bad_alloc.
    [[nodiscard]] void* scratch(std::size_t bytes);

private:
    std::shared_ptr<Shared> shared_;
    UniqueStream stream_;
    std::vector<DeviceMemory> scratch_;  ///< each larger than the one before
    std::size_t scratch_bytes_ = 0;      ///< of the last
};

}  // namespace finch::backend::cuda
