#pragma once

#include "recorded_launch.hpp"
#include "step_graphs.hpp"
#include "stream.hpp"

#include <memory>
#include <vector>

namespace finch::backend::cuda {

class CudaCapturedStep;

/// Captured steps that launch the same kernels with the same grids, on different streams of one device (horizontal
/// fusion; HFTA, Wang et al. 2021). The steps may differ in weights, rates, activations and data. If two or more
/// members wait, they run on the gang's stream: each kernel is launched once for all members (GangKernel), and one
/// graph has as many nodes as that of one member. If members execute different numbers of steps, the blocks of finished
/// members end immediately. A member that waits alone runs on its own stream. The bits are those of separate runs.
class Gang {
public:
    /// Throws std::bad_alloc.
    explicit Gang(std::shared_ptr<Shared> shared);
    Gang(const Gang&) = delete;
    Gang& operator=(const Gang&) = delete;

    /// Returns whether there is a free place and `step` has the same kernels and grids.
    [[nodiscard]] bool suits(const CudaCapturedStep& step) const;
    void add(CudaCapturedStep& step);
    void remove(const CudaCapturedStep& step);
    [[nodiscard]] bool is_empty() const noexcept { return members_.empty(); }

    /// Enqueues the executions that wait (CudaCapturedStep::waiting()). If CUDA reports an error, the next run() or
    /// seconds() of each affected member throws it.
    void launch();
    void launch_if_all_wait();

private:
    void launch_alone();
    void launch_together();
    /// Captures a step of all members unless there is a graph of it. Returns false if the capture failed.
    [[nodiscard]] bool capture_if_needed();
    void enqueue_step();

    Stream stream_;
    StreamMemory steps_;  ///< GangSteps
    std::vector<CudaCapturedStep*> members_;
    StepGraphs graphs_;        ///< of all members
    bool can_capture_ = true;  ///< false: a capture failed; reset when the members change
    UniqueEvent done_;         ///< recorded after the gang's last steps
};

/// The gangs of a device. A step joins the first gang that suits it.
class Gangs {
public:
    [[nodiscard]] Gang& join(CudaCapturedStep& step);
    void leave(const CudaCapturedStep& step, Gang& gang);
    /// Enqueues all executions that wait.
    void launch_waiting();

private:
    std::vector<std::unique_ptr<Gang>> gangs_;
};

}  // namespace finch::backend::cuda
