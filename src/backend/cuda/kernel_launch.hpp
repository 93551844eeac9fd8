#pragma once

#include "grid.hpp"
#include "recorded_launch.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cuda_runtime.h>
#include <kernel_entry.hpp>
#include <span>
#include <type_traits>
#include <vector>

// How kernels are written and launched. A kernel is a plain struct. Its members are the arguments, and its body is
//
//     template <class Thread> FINCH_DEVICE void operator()(Thread& thread) const;
//
// or the two bodies of a Cooperative kernel (grid.hpp). The tests can therefore run the same body, including barriers,
// on a CPU. The kernel that loads the batch, the first of a step, has the member
// `static constexpr bool begins_step = true`. The loss has `ends_step = true`. Both have one-dimensional grids. In a
// gang, GangKernel updates GangSteps in these two kernels.
//
// In a template, write `grid = Grid{.threads = 64}` with the type: nvcc 13.0 would assign the values of
// `grid = {.threads = 64}` by position. With nvcc 13.0, the headers of fmt do not compile in a .cu file.
namespace finch::backend::cuda {

template <class Kernel>
inline constexpr bool begins_step = requires {
    Kernel::begins_step;
};

template <class Kernel>
inline constexpr bool ends_step = requires {
    Kernel::ends_step;
};

/// The kernel that runs one kernel of each member of a gang (gang.hpp), with the bits of separate launches. Each member
/// has `blocks_z` consecutive values of blockIdx.z. The blocks of a member without a step end immediately.
template <class Kernel>
struct GangKernel {
    static constexpr int max_threads = Kernel::max_threads;
    static constexpr int least_blocks = cuda::least_blocks<Kernel>;
    Kernel members[most_members];
    GangSteps* steps;
    int blocks_z;  ///< of one member

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const int member = thread.block_z() / blocks_z;
        const bool is_active = begins_step<Kernel> ? steps->left[member] > 0 : steps->is_active[member] != 0;
        if (begins_step<Kernel> && thread.global_index() == 0) {
            steps->is_active[member] = is_active ? 1 : 0;
        }
        if (!is_active) {
            return;
        }
        MemberThread<Thread> own(thread, thread.block_z() - member * blocks_z);
        members[member](own);
        if (ends_step<Kernel> && thread.global_index() == 0) {
            steps->left[member] -= 1;
        }
    }

private:
    /// A thread with the block_z() that it would have in a launch of its member alone.
    template <class Thread>
    class MemberThread : public Thread {
    public:
        FINCH_DEVICE MemberThread(const Thread& thread, int block_z) : Thread(thread), block_z_(block_z) {}
        [[nodiscard]] FINCH_DEVICE int block_z() const { return block_z_; }

    private:
        int block_z_;
    };
};

template <class Kernel>
[[nodiscard]] cudaError_t enqueue_for_gang(cudaStream_t stream, const Grid& grid, GangSteps* steps,
                                           std::span<const RecordedLaunch* const> members) {
    constexpr std::size_t most_bytes = 32'764;  // CUDA's limit for a kernel's arguments (CUDA 12.1)
    static_assert(std::is_trivially_copyable_v<Kernel> && sizeof(GangKernel<Kernel>) <= most_bytes);
    GangKernel<Kernel> gang{.members = {}, .steps = steps, .blocks_z = static_cast<int>(grid.blocks_z)};
    for (std::size_t i = 0; i < members.size(); ++i) {
        std::memcpy(&gang.members[i], members[i]->kernel.data(), sizeof(Kernel));
    }
    Grid all = grid;
    all.blocks_z *= static_cast<std::int64_t>(members.size());
    return enqueue(stream, all, gang);
}

/// One body of a Cooperative kernel as a kernel of its own. Shared memory does not persist between the two.
template <class Kernel, bool is_first>
struct HalfKernel {
    static constexpr int max_threads = Kernel::max_threads;
    Kernel kernel;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        if constexpr (is_first) {
            kernel.before_grid_sync(thread);
        } else {
            kernel.after_grid_sync(thread);
        }
    }
};

/// Launches `kernel` on `stream`. Returns CUDA's error code; the caller checks it with FINCH_CUDA.
template <class Kernel>
[[nodiscard]] cudaError_t launch(cudaStream_t stream, const Grid& grid, const Kernel& kernel) {
    if constexpr (!Cooperative<Kernel>) {
        if (recording != nullptr) {
            const auto* bytes = reinterpret_cast<const std::byte*>(&kernel);
            recording->push_back({&enqueue_for_gang<Kernel>, grid, begins_step<Kernel>, ends_step<Kernel>,
                                  std::vector(bytes, bytes + sizeof kernel)});
        }
    }
    return enqueue(stream, grid, kernel);
}

}  // namespace finch::backend::cuda
