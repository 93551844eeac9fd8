#pragma once

#include "finch/backend/device.hpp"

#include "stream.hpp"

#include <functional>

namespace finch::backend::cuda {

/// A step on a stream, done by CUDA graphs: one that holds it once, and one that holds it many times, so that the host
/// speaks rarely. The first run asks call by call, since libraries load their kernels and connect on first use; then it
/// is captured. If it cannot be captured, or there is no memory for a graph, steps run call by call.
class CudaCapturedStep : public CapturedStep {
public:
    /// `stream` must outlive it, and everything that `work` uses.
    CudaCapturedStep(Stream& stream, std::function<void()> work, CaptureAs how);

    void run(std::int64_t times) override;
    [[nodiscard]] double seconds() const override;

private:
    /// Both throw what CUDA says.
    [[nodiscard]] UniqueGraphExec capture(std::int64_t times);
    void launch(std::int64_t times);
    /// Captures, or gives graphs up for good.
    void try_to_capture(bool many);

    Stream& stream_;
    std::function<void()> work_;
    bool by_graph_;
    bool has_run_ = false;
    UniqueGraphExec once_;
    UniqueGraphExec many_;
    UniqueEvent begin_;
    UniqueEvent end_;
};

}  // namespace finch::backend::cuda
