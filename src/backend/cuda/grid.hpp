#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace finch::backend::cuda {

/// The launch configuration of a kernel.
struct Grid {
    std::int64_t blocks_x = 1;
    std::int64_t blocks_y = 1;  ///< at most 65535
    std::int64_t blocks_z = 1;  ///< at most 65535
    int threads = 256;          ///< threads per block, one-dimensional; at most Kernel::max_threads
    std::size_t shared_bytes = 0;
    bool operator==(const Grid&) const = default;
};

/// Kernel::least_blocks limits the registers, so that a multiprocessor has room for so many blocks. Without it, the
/// compiler chooses.
template <class Kernel>
inline constexpr int least_blocks = 0;
template <class Kernel>
requires requires {
    Kernel::least_blocks;
}
inline constexpr int least_blocks<Kernel> = Kernel::least_blocks;

/// A kernel with the body before_grid_sync(thread), a barrier for all threads of the grid, and after_grid_sync(thread).
/// Shared memory persists from the first body to the second. All blocks must be resident at once
/// (cudaLaunchCooperativeKernel); this holds with at most as many blocks as multiprocessors. CUDA does not document
/// what happens if two such kernels wait for room at the same time, so only one stream of a device may launch them
/// (Stream::may_cooperate()). Such a kernel is never in a gang.
template <class Kernel>
concept Cooperative = requires {
    Kernel::is_cooperative;
};

/// Returns how many groups of `size` are needed for `count` elements.
[[nodiscard]] constexpr std::int64_t groups_of(std::int64_t count, std::int64_t size) {
    return (count + size - 1) / size;
}

/// Returns the grid for kernels with one element per thread, or with several if there are very many elements.
[[nodiscard]] inline Grid grid_for(std::int64_t elements) {
    return {.blocks_x = std::clamp<std::int64_t>(groups_of(elements, 256), 1, 1 << 20), .threads = 256};
}

}  // namespace finch::backend::cuda
