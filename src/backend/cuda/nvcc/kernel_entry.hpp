#pragma once

#include "grid.hpp"
#include "shared_memory.hpp"

#include <cooperative_groups.h>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <new>

// The part of kernel_launch.hpp that differs between nvcc and the tests, which run the bodies of kernels on a CPU
// (tests/support/rehearsal has another kernel_entry.hpp).

#define FINCH_DEVICE __device__ __forceinline__
#define FINCH_UNROLL _Pragma("unroll")
#define FINCH_NO_UNROLL _Pragma("unroll 1")

namespace finch::backend::cuda {

/// A thread of a kernel, as the kernel's body uses it.
class Thread {
public:
    [[nodiscard]] FINCH_DEVICE int index() const { return static_cast<int>(threadIdx.x); }
    /// Returns the number of threads in the block.
    [[nodiscard]] FINCH_DEVICE int count() const { return static_cast<int>(blockDim.x); }
    [[nodiscard]] FINCH_DEVICE int block_x() const { return static_cast<int>(blockIdx.x); }
    [[nodiscard]] FINCH_DEVICE int block_y() const { return static_cast<int>(blockIdx.y); }
    [[nodiscard]] FINCH_DEVICE int block_z() const { return static_cast<int>(blockIdx.z); }
    [[nodiscard]] FINCH_DEVICE int blocks_x() const { return static_cast<int>(gridDim.x); }
    /// Returns the index of this thread in a one-dimensional grid. The number of threads in the grid is global_count().
    /// global_index() and global_count() are for loops over more elements than threads.
    [[nodiscard]] FINCH_DEVICE std::int64_t global_index() const {
        return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    }
    [[nodiscard]] FINCH_DEVICE std::int64_t global_count() const {
        return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    }
    /// Returns the device's clock, which is the same for all its streams. The resolution of the clock may be only a
    /// microsecond.
    [[nodiscard]] FINCH_DEVICE std::uint64_t nanoseconds() const {
        std::uint64_t now;
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
        return now;
    }
    /// Waits for all threads of the block, and makes their writes visible. Every thread of the block must call sync().
    FINCH_DEVICE void sync() const { __syncthreads(); }
    /// Returns the block's shared memory: Grid::shared_bytes, aligned to 16 bytes, not zeroed.
    template <class T>
    [[nodiscard]] FINCH_DEVICE T* shared() const {
        extern __shared__ __align__(16) unsigned char finch_shared[];
        return reinterpret_cast<T*>(finch_shared);
    }
    /// Returns the `value` of another lane in the warp of 32. That lane's number is this lane's number xor `mask`.
    /// `mask` is 1, 2, 4, 8 or 16. All lanes must call shuffle_xor(), so the number of threads per block must be a
    /// multiple of 32.
    template <class T>
    [[nodiscard]] FINCH_DEVICE T shuffle_xor(T value, int mask) const {
        return __shfl_xor_sync(0xffffffffU, value, mask);
    }
};

template <class Kernel>
__global__ void __launch_bounds__(Kernel::max_threads, least_blocks<Kernel>)
    kernel_entry(const __grid_constant__ Kernel kernel) {
    Thread thread;
    if constexpr (Cooperative<Kernel>) {
        kernel.before_grid_sync(thread);
        cooperative_groups::this_grid().sync();
        kernel.after_grid_sync(thread);
    } else {
        kernel(thread);
    }
}

/// Enqueues `kernel` on `stream`. Returns CUDA's error code.
template <class Kernel>
[[nodiscard]] cudaError_t enqueue(cudaStream_t stream, const Grid& grid, const Kernel& kernel) {
    if (const cudaError_t allowed =
            allow_shared_memory(reinterpret_cast<const void*>(&kernel_entry<Kernel>), grid.shared_bytes);
        allowed != cudaSuccess) {
        return allowed;
    }
    const dim3 blocks(static_cast<unsigned>(grid.blocks_x), static_cast<unsigned>(grid.blocks_y),
                      static_cast<unsigned>(grid.blocks_z));
    const auto threads = static_cast<unsigned>(grid.threads);
    if constexpr (Cooperative<Kernel>) {
        void* arguments[] = {const_cast<Kernel*>(&kernel)};
        return cudaLaunchCooperativeKernel(&kernel_entry<Kernel>, blocks, threads, arguments, grid.shared_bytes,
                                           stream);
    } else {
        kernel_entry<Kernel><<<blocks, threads, grid.shared_bytes, stream>>>(kernel);
        return cudaGetLastError();
    }
}

}  // namespace finch::backend::cuda
