#pragma once

#include "finch/backend/device.hpp"

#include "gang.hpp"
#include "recorded_launch.hpp"
#include "step_graphs.hpp"
#include "stream.hpp"

#include <exception>
#include <functional>
#include <utility>
#include <vector>

namespace finch::backend::cuda {

/// A step on a stream, executed by CUDA graphs. The first execution is call by call, because libraries load their
/// kernels and connect on first use. After the first execution the step is captured. If the capture fails, or there is
/// no memory for a graph, steps run call by call, or run() throws Error (CaptureAs).
///
/// A step captured with CaptureAs::graph that begins with Device::load_batch(), has one loss and only Finch's own
/// kernels joins a gang. run() then only notes the executions. They are enqueued when all members of the gang wait, or
/// at the next Stream::get() or Gangs::launch_waiting().
class CudaCapturedStep : public CapturedStep {
public:
    /// `stream` and everything that `work` uses must outlive this object.
    CudaCapturedStep(Stream& stream, std::function<void()> work, CaptureAs how);
    ~CudaCapturedStep() override;
    CudaCapturedStep(const CudaCapturedStep&) = delete;
    CudaCapturedStep& operator=(const CudaCapturedStep&) = delete;

    void run(std::int64_t times) override;
    [[nodiscard]] bool waits() const override { return waiting_ > 0; }
    [[nodiscard]] double seconds() const override;

    /// The kernels of one execution. Empty if the step cannot join a gang.
    [[nodiscard]] const std::vector<RecordedLaunch>& launches() const noexcept { return launches_; }
    [[nodiscard]] Stream& stream() noexcept { return stream_; }
    /// Number of executions that wait for the gang. take_waiting() returns it, sets it to 0 and cancels the stream's
    /// launch_before_next().
    [[nodiscard]] std::int64_t waiting() const noexcept { return waiting_; }
    [[nodiscard]] std::int64_t take_waiting();
    /// Enqueues `times` executions on the step's own stream.
    void run_alone(std::int64_t times);
    /// Records the event at which seconds() begins, and returns it. Cancels the stream's launch_before_next().
    cudaEvent_t begin();
    /// Lets the step's stream wait for the end of the gang's steps. `fraction`: the part of the time since begin() in
    /// which this step executed: its executions / the most executions of a member.
    void end(cudaEvent_t done, double fraction);
    /// Lets run() and seconds() throw `failure` from now on.
    void fail(std::exception_ptr failure) noexcept { failure_ = std::move(failure); }

private:
    /// Captures the step. If the capture fails, disables graphs for the lifetime of this object.
    void try_to_capture();
    void try_to_join();

    Stream& stream_;
    std::function<void()> work_;
    bool may_join_gang_;
    bool by_graph_;
    bool needs_graph_;  ///< calls are an error
    bool has_run_ = false;
    StepGraphs graphs_;
    UniqueEvent begin_;
    UniqueEvent end_;
    std::vector<RecordedLaunch> launches_;
    Gang* gang_ = nullptr;  ///< null: the step runs alone
    std::int64_t waiting_ = 0;
    double fraction_ = 1;  ///< see end()
    std::exception_ptr failure_;
};

}  // namespace finch::backend::cuda
