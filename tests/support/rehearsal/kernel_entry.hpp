#pragma once

#include "grid.hpp"
#include "shared_memory.hpp"
#include "support/rehearsal/fibers.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cuda_runtime.h>
#include <functional>
#include <memory>
#include <vector>

// Replaces src/backend/cuda/nvcc/kernel_entry.hpp in tests. Kernels run on the CPU, one block after another. Each
// thread of a block is a fiber, so barriers and shuffles have the same meaning as on a GPU.

#define FINCH_DEVICE inline
#define FINCH_UNROLL
#define FINCH_NO_UNROLL

namespace finch::rehearsal {

/// Appends work to a stream of the stand-in. If the stream is being captured, the work is only recorded.
void submit(cudaStream_t stream, std::function<void()> work);
/// Appends a kernel to a stream, like submit(). Returns cudaErrorInvalidValue if `shared_bytes` is above the limit of
/// the kernel.
[[nodiscard]] cudaError_t submit_kernel(cudaStream_t stream, const void* function, std::size_t shared_bytes,
                                        std::function<void()> work);

/// Returns the device clock that kernels read. It is the host's clock, or the clock that a test has set with
/// set_clock() (control.hpp).
[[nodiscard]] std::uint64_t device_nanoseconds();

[[nodiscard]] int multiprocessors();  ///< of the device

/// A variable per kernel type. The stand-in uses its address as the address of the kernel.
template <class Kernel>
inline constexpr char kernel_address = 0;

}  // namespace finch::rehearsal

namespace finch::backend::cuda {

/// A thread of a kernel, see the class Thread in src/backend/cuda/nvcc/kernel_entry.hpp.
class Thread {
public:
    Thread(rehearsal::Block& block, const Grid& grid, std::int64_t x, std::int64_t y, std::int64_t z, int index)
        : block_(block), grid_(grid), x_(x), y_(y), z_(z), index_(index) {}

    [[nodiscard]] int index() const { return index_; }
    [[nodiscard]] int count() const { return grid_.threads; }
    [[nodiscard]] int block_x() const { return static_cast<int>(x_); }
    [[nodiscard]] int block_y() const { return static_cast<int>(y_); }
    [[nodiscard]] int block_z() const { return static_cast<int>(z_); }
    [[nodiscard]] int blocks_x() const { return static_cast<int>(grid_.blocks_x); }
    [[nodiscard]] std::int64_t global_index() const { return x_ * grid_.threads + index_; }
    [[nodiscard]] std::int64_t global_count() const { return grid_.blocks_x * grid_.threads; }
    [[nodiscard]] std::uint64_t nanoseconds() const { return rehearsal::device_nanoseconds(); }
    void sync() const { block_.wait(index_, rehearsal::Wait::barrier); }
    template <class T>
    [[nodiscard]] T* shared() const {
        return reinterpret_cast<T*>(block_.shared());
    }
    template <class T>
    [[nodiscard]] T shuffle_xor(T value, int mask) const {
        static_assert(sizeof(T) <= rehearsal::Block::slot_bytes);
        std::memcpy(block_.slot(index_), &value, sizeof value);
        block_.wait(index_, rehearsal::Wait::shuffle);
        T other;
        std::memcpy(&other, block_.slot(index_ ^ mask), sizeof other);
        block_.wait(index_, rehearsal::Wait::shuffle);  // all threads read before the next write
        return other;
    }

private:
    rehearsal::Block& block_;
    const Grid& grid_;
    std::int64_t x_, y_, z_;
    int index_;
};

/// Calls body(thread) for each thread. `block_at(x, y, z)` returns the memory of a block.
void run_blocks(const Grid& grid, const auto& block_at, const auto& body) {
    for (std::int64_t z = 0; z < grid.blocks_z; ++z) {
        for (std::int64_t y = 0; y < grid.blocks_y; ++y) {
            for (std::int64_t x = 0; x < grid.blocks_x; ++x) {
                rehearsal::Block& block = block_at(x, y, z);
                block.run([&](int index) {
                    Thread thread(block, grid, x, y, z, index);
                    body(thread);
                });
            }
        }
    }
}

template <class Kernel>
void run_grid(const Grid& grid, const Kernel& kernel) {
    if constexpr (Cooperative<Kernel>) {
        std::vector<rehearsal::Block> blocks;
        for (std::int64_t i = 0; i < grid.blocks_x * grid.blocks_y * grid.blocks_z; ++i) {
            blocks.emplace_back(grid.threads, grid.shared_bytes).clear_shared();
        }
        const auto block_at = [&](std::int64_t x, std::int64_t y, std::int64_t z) -> rehearsal::Block& {
            return blocks[static_cast<std::size_t>((z * grid.blocks_y + y) * grid.blocks_x + x)];
        };
        run_blocks(grid, block_at, [&](Thread& thread) { kernel.before_grid_sync(thread); });
        run_blocks(grid, block_at, [&](Thread& thread) { kernel.after_grid_sync(thread); });
    } else {
        rehearsal::Block block(grid.threads, grid.shared_bytes);
        const auto cleared = [&](auto...) -> rehearsal::Block& {
            block.clear_shared();
            return block;
        };
        run_blocks(grid, cleared, [&](Thread& thread) { kernel(thread); });
    }
}

template <class Kernel>
[[nodiscard]] cudaError_t enqueue(cudaStream_t stream, const Grid& grid, const Kernel& kernel) {
    const bool fits = grid.blocks_x >= 1 && grid.blocks_x < (std::int64_t{1} << 31) && grid.blocks_y >= 1 &&
                      grid.blocks_y <= 65535 && grid.blocks_z >= 1 && grid.blocks_z <= 65535 && grid.threads >= 1 &&
                      grid.threads <= Kernel::max_threads && Kernel::max_threads <= 1024;
    if (!fits) {
        return cudaErrorInvalidConfiguration;
    }
    if (Cooperative<Kernel> && grid.blocks_x * grid.blocks_y * grid.blocks_z > rehearsal::multiprocessors()) {
        return cudaErrorCooperativeLaunchTooLarge;
    }
    const void* function = &rehearsal::kernel_address<Kernel>;
    if (const cudaError_t code = allow_shared_memory(function, grid.shared_bytes); code != cudaSuccess) {
        return code;
    }
    return rehearsal::submit_kernel(stream, function, grid.shared_bytes, [grid, kernel] { run_grid(grid, kernel); });
}

}  // namespace finch::backend::cuda
