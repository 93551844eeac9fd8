#pragma once

#include "finch/backend/device.hpp"

#include "stream.hpp"

#include <functional>

namespace finch::backend::cuda {

/// A step on a stream, executed by CUDA graphs. One graph contains the step once, another graph contains it many times,
/// so that the host launches rarely. The first execution is call by call, because libraries load their kernels and
/// connect on first use. After the first execution the step is captured. If the capture fails, or there is no memory
/// for a graph, steps run call by call, or run() throws Error (CaptureAs).
class CudaCapturedStep : public CapturedStep {
public:
    /// `stream` and everything that `work` uses must outlive this object.
    CudaCapturedStep(Stream& stream, std::function<void()> work, CaptureAs how);

    void run(std::int64_t times) override;
    [[nodiscard]] double seconds() const override;

private:
    /// capture() and launch() throw if CUDA reports an error.
    [[nodiscard]] UniqueGraphExec capture(std::int64_t times);
    void launch(std::int64_t times);
    /// Captures the step. If the capture fails, disables graphs for the lifetime of this object.
    void try_to_capture(bool many);

    Stream& stream_;
    std::function<void()> work_;
    bool by_graph_;
    bool needs_graph_;  ///< calls are an error
    bool has_run_ = false;
    UniqueGraphExec once_;
    UniqueGraphExec many_;
    UniqueEvent begin_;
    UniqueEvent end_;
};

}  // namespace finch::backend::cuda
