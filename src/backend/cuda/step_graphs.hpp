#pragma once

#include "finch/backend/cuda_runtime.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace finch::backend::cuda {

/// The graphs of a step. One graph contains the step once, another graph contains it many times, so that the host
/// launches rarely.
class StepGraphs {
public:
    /// Captures the step, which is all that `work` enqueues on `stream`. Returns the number of nodes. Throws if the
    /// capture fails or there is no memory for the graph; then there are no graphs.
    std::size_t capture(cudaStream_t stream, const std::function<void()>& work);
    /// Launches the step `times` times. capture() must have succeeded with the same arguments.
    void launch(cudaStream_t stream, std::int64_t times, const std::function<void()>& work);
    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(once_); }

private:
    UniqueGraphExec once_;
    UniqueGraphExec many_;
    bool many_fits_ = true;  ///< false: the larger graph could not be made
};

}  // namespace finch::backend::cuda
