#include "captured_step.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"

#include <exception>
#include <utility>

namespace finch::backend::cuda {
namespace {

/// The number of steps in the larger of the two graphs. A graph of this size makes the host's 3 µs per launch
/// negligible, and its instantiation takes only milliseconds (100 nodes: 0.13 ms).
constexpr std::int64_t many = 32;

/// A capture in progress. The destructor always ends the capture: a stream that is still capturing rejects all other
/// calls.
class Capture {
public:
    explicit Capture(cudaStream_t stream) : stream_(stream) {
        FINCH_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    }
    ~Capture() {
        if (stream_ != nullptr) {
            cudaGraph_t graph = nullptr;
            static_cast<void>(cudaStreamEndCapture(stream_, &graph));
            static_cast<void>(cudaGetLastError());
            UniqueGraph unwanted(graph);
        }
    }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    [[nodiscard]] UniqueGraph end() {
        cudaGraph_t graph = nullptr;
        FINCH_CUDA(cudaStreamEndCapture(std::exchange(stream_, nullptr), &graph));
        return UniqueGraph(graph);
    }

private:
    cudaStream_t stream_;
};

}  // namespace

CudaCapturedStep::CudaCapturedStep(Stream& stream, std::function<void()> work, CaptureAs how)
    : stream_(stream),
      work_(std::move(work)),
      by_graph_(how != CaptureAs::calls),
      needs_graph_(how == CaptureAs::graph_or_error),
      begin_(make_timer()),
      end_(make_timer()) {}

void CudaCapturedStep::run(std::int64_t times) {
    FINCH_CUDA(cudaEventRecord(begin_.get(), stream_.get()));
    if (times > 0 && !std::exchange(has_run_, true)) {
        work_();
        --times;
    }
    if (by_graph_ && times > 0 && !once_) {
        try_to_capture(false);
    }
    if (by_graph_ && times >= many && !many_) {
        try_to_capture(true);
    }
    launch(times);
    FINCH_CUDA(cudaEventRecord(end_.get(), stream_.get()));
}

void CudaCapturedStep::launch(std::int64_t times) {
    for (; many_ && times >= many; times -= many) {
        FINCH_CUDA(cudaGraphLaunch(many_.get(), stream_.get()));
    }
    for (; times > 0; --times) {
        if (once_) {
            FINCH_CUDA(cudaGraphLaunch(once_.get(), stream_.get()));
        } else {
            work_();
        }
    }
}

void CudaCapturedStep::try_to_capture(bool as_many) {
    try {
        (as_many ? many_ : once_) = capture(as_many ? many : 1);
    } catch (const std::exception& error) {
        by_graph_ = false;
        if (needs_graph_ && !once_) {
            throw Error(
                fmt::format("a step on {} cannot be captured as a graph, so it cannot take part in the sums of "
                            "the worker's ranks: {}",
                            stream_.facts().name, error.what()));
        }
        spdlog::warn("a step on {} cannot be captured as a graph and runs call by call: {}", stream_.facts().name,
                     error.what());
    }
}

UniqueGraphExec CudaCapturedStep::capture(std::int64_t times) {
    Capture capture(stream_.get());
    for (std::int64_t i = 0; i < times; ++i) {
        work_();
    }
    const UniqueGraph graph = capture.end();
    cudaGraphExec_t exec = nullptr;
    FINCH_CUDA(cudaGraphInstantiate(&exec, graph.get(), 0));
    stream_.keep_scratch();
    return UniqueGraphExec(exec);
}

double CudaCapturedStep::seconds() const {
    float milliseconds = 0;
    FINCH_CUDA(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
    return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace finch::backend::cuda
