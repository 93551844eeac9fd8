#pragma once

#include "shared_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <new>

// How kernels are written and started. A kernel is a plain struct, its arguments the members, its body
//
//     template <class Thread> FINCH_DEVICE void operator()(Thread& thread) const;
//
// so that the tests can run the same body, barriers included, on a CPU: they put another kernel_launch.hpp in the place
// of this one (tests/support/rehearsal), with a Thread of the same methods.
//
// Two things to know of nvcc 13.0: in a template, an assignment `grid = {.threads = 64}` takes the values by position,
// so name the type, `grid = Grid{.threads = 64}`; and fmt's headers do not compile in a .cu.

#define FINCH_DEVICE __device__ __forceinline__
#define FINCH_UNROLL _Pragma("unroll")

namespace finch::backend::cuda {

/// How many threads a kernel is started with.
struct Grid {
    std::int64_t blocks_x = 1;
    std::int64_t blocks_y = 1;  ///< at most 65535
    std::int64_t blocks_z = 1;  ///< at most 65535
    int threads = 256;          ///< of a block, one-dimensional; at most Kernel::max_threads
    std::size_t shared_bytes = 0;
};

/// A thread of a kernel, as its body sees it.
class Thread {
public:
    [[nodiscard]] FINCH_DEVICE int index() const { return static_cast<int>(threadIdx.x); }
    /// Threads of the block.
    [[nodiscard]] FINCH_DEVICE int count() const { return static_cast<int>(blockDim.x); }
    [[nodiscard]] FINCH_DEVICE int block_x() const { return static_cast<int>(blockIdx.x); }
    [[nodiscard]] FINCH_DEVICE int block_y() const { return static_cast<int>(blockIdx.y); }
    [[nodiscard]] FINCH_DEVICE int block_z() const { return static_cast<int>(blockIdx.z); }
    [[nodiscard]] FINCH_DEVICE int blocks_x() const { return static_cast<int>(gridDim.x); }
    /// Number of this thread in a grid of one dimension, and how many there are: for loops over more elements than
    /// threads.
    [[nodiscard]] FINCH_DEVICE std::int64_t global_index() const {
        return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    }
    [[nodiscard]] FINCH_DEVICE std::int64_t global_count() const {
        return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    }
    /// The device's clock, the same for all its streams. It may go in steps of a microsecond.
    [[nodiscard]] FINCH_DEVICE std::uint64_t nanoseconds() const {
        std::uint64_t now;
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
        return now;
    }
    /// Waits for all threads of the block, and makes their writes seen. Every thread of the block must come here.
    FINCH_DEVICE void sync() const { __syncthreads(); }
    /// The block's shared memory, Grid::shared_bytes, aligned to 16 bytes, not zeroed.
    template <class T>
    [[nodiscard]] FINCH_DEVICE T* shared() const {
        extern __shared__ __align__(16) unsigned char finch_shared[];
        return reinterpret_cast<T*>(finch_shared);
    }
    /// `value` of the lane whose number differs by `mask` (1, 2, 4, 8 or 16) in the warp of 32. All lanes must come
    /// here: blocks whose threads are no multiple of 32 may not use it.
    template <class T>
    [[nodiscard]] FINCH_DEVICE T shuffle_xor(T value, int mask) const {
        return __shfl_xor_sync(0xffffffffU, value, mask);
    }
};

template <class Kernel>
__global__ void __launch_bounds__(Kernel::max_threads) kernel_entry(const Kernel kernel) {
    Thread thread;
    kernel(thread);
}

/// Puts `kernel` in line on `stream`. Returns what CUDA says; the caller checks it with FINCH_CUDA.
template <class Kernel>
[[nodiscard]] cudaError_t launch(cudaStream_t stream, const Grid& grid, const Kernel& kernel) {
    if (const cudaError_t allowed =
            allow_shared_memory(reinterpret_cast<const void*>(&kernel_entry<Kernel>), grid.shared_bytes);
        allowed != cudaSuccess) {
        return allowed;
    }
    const dim3 blocks(static_cast<unsigned>(grid.blocks_x), static_cast<unsigned>(grid.blocks_y),
                      static_cast<unsigned>(grid.blocks_z));
    kernel_entry<Kernel><<<blocks, static_cast<unsigned>(grid.threads), grid.shared_bytes, stream>>>(kernel);
    return cudaGetLastError();
}

}  // namespace finch::backend::cuda
