#pragma once

#include "recorded_launch.hpp"
#include "step_graphs.hpp"
#include "stream.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace finch::backend::cuda {

class CudaCapturedStep;

/// Steps of the same kernels in the same grids, on streams of one device: those of individuals with the same shape,
/// which differ in weights, rates, activations or data. Their executions run on the gang's stream, with one kernel for
/// all members (Together), by a graph for all members. So a step of all members has as many nodes as a step of one
/// member. If members execute different numbers of steps, the blocks of those that are done end immediately. The bits
/// are those of steps that run alone.
class Gang {
public:
    /// Throws std::bad_alloc.
    explicit Gang(std::shared_ptr<Shared> shared);
    ~Gang();
    Gang(const Gang&) = delete;
    Gang& operator=(const Gang&) = delete;

    /// Returns whether there is a free place and `step` has the same kernels.
    [[nodiscard]] bool suits(const CudaCapturedStep& step) const;
    void add(CudaCapturedStep& step);
    void remove(const CudaCapturedStep& step);
    [[nodiscard]] bool is_empty() const noexcept { return members_.empty(); }

    /// Enqueues the executions that wait (CudaCapturedStep::waiting()). If CUDA reports an error, the members that wait
    /// report it later.
    void launch();
    void launch_if_all_wait();

private:
    void launch_alone();
    void launch_together();
    [[nodiscard]] bool has_graphs();
    void enqueue_step();

    Stream stream_;
    StreamMemory steps_;  ///< GangSteps
    std::vector<CudaCapturedStep*> members_;
    StepGraphs graphs_;    ///< of all members
    bool can_run_ = true;  ///< false: there was no memory for a graph
    UniqueEvent done_;     ///< recorded after the gang's last steps
};

/// The gangs of a device. A step joins the first gang that suits it.
class Gangs {
public:
    ~Gangs();
    [[nodiscard]] Gang& join(CudaCapturedStep& step);
    void leave(const CudaCapturedStep& step, Gang& gang);
    /// Enqueues all executions that wait.
    void launch_waiting();

private:
    std::vector<std::unique_ptr<Gang>> gangs_;
};

}  // namespace finch::backend::cuda
