#pragma once

#include "grid.hpp"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <span>
#include <vector>

namespace finch::backend::cuda {

inline constexpr int most_members = 8;  ///< of a gang (gang.hpp)

/// The steps of a gang's members, in device memory.
struct GangSteps {
    std::int32_t left[most_members];       ///< steps whose loss has not been computed
    std::int32_t is_active[most_members];  ///< 1: the member takes part in the current step
};

/// The launch of a kernel, recorded so that a gang can repeat it together with those of other members.
struct RecordedLaunch {
    /// Enqueues the launches of all members, at most most_members, as one kernel.
    using Enqueue = cudaError_t (*)(cudaStream_t stream, const Grid& grid, GangSteps* steps,
                                    std::span<const RecordedLaunch* const> members);
    Enqueue enqueue;
    Grid grid;
    bool begins_step;
    bool ends_step;
    std::vector<std::byte> kernel;  ///< the arguments

    /// Returns whether both launches can be one kernel.
    [[nodiscard]] bool suits(const RecordedLaunch& other) const {
        return enqueue == other.enqueue && grid == other.grid;
    }
};

/// Where launch() records launches (kernel_launch.hpp); null: nowhere.
inline thread_local std::vector<RecordedLaunch>* recording = nullptr;

}  // namespace finch::backend::cuda
