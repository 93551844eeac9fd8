#include "captured_step.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"

#include <algorithm>
#include <cstddef>

namespace finch::backend::cuda {
namespace {

/// Records the launches of this thread during its lifetime.
class Recording {
public:
    explicit Recording(std::vector<RecordedLaunch>& to) { recording = &to; }
    ~Recording() { recording = nullptr; }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
};

}  // namespace

CudaCapturedStep::CudaCapturedStep(Stream& stream, std::function<void()> work, CaptureAs how)
    : stream_(stream),
      work_(std::move(work)),
      may_join_gang_(how == CaptureAs::graph),
      by_graph_(how != CaptureAs::calls),
      needs_graph_(how == CaptureAs::graph_or_error),
      begin_(make_event(cudaEventDefault)),
      end_(make_event(cudaEventDefault)) {}

CudaCapturedStep::~CudaCapturedStep() {
    if (waits()) {
        static_cast<void>(take_waiting());
    }
    if (gang_ != nullptr) {
        stream_.shared()->gangs->leave(*this, *gang_);
    }
}

void CudaCapturedStep::run(std::int64_t times) {
    static_cast<void>(stream_.get());  // launches the executions that wait
    if (failure_) {
        std::rethrow_exception(failure_);
    }
    const bool is_first = !std::exchange(has_run_, true);
    if (gang_ != nullptr && times > 0) {
        waiting_ = times;
        stream_.launch_before_next([gang = gang_] { gang->launch(); });
        gang_->launch_if_all_wait();
        return;
    }
    begin();
    if (is_first && times > 0) {
        work_();
        --times;
    }
    run_alone(times);
}

std::int64_t CudaCapturedStep::take_waiting() {
    stream_.launch_before_next({});
    return std::exchange(waiting_, 0);
}

void CudaCapturedStep::run_alone(std::int64_t times) {
    if (by_graph_ && times > 0 && !graphs_) {
        try_to_capture();
    }
    if (by_graph_) {
        graphs_.launch(stream_.get(), times, work_);
        stream_.keep_scratch();
    } else {
        for (; times > 0; --times) {
            work_();
        }
    }
    fraction_ = 1;
    FINCH_CUDA(cudaEventRecord(end_.get(), stream_.get()));
}

void CudaCapturedStep::try_to_capture() {
    try {
        std::size_t nodes = 0;
        {
            const Recording launches(launches_);
            nodes = graphs_.capture(stream_.get(), work_);
        }
        stream_.keep_scratch();
        const bool is_whole = launches_.size() == nodes;  // a library's kernels and copies are not recorded
        const auto begun =
            std::count_if(launches_.begin(), launches_.end(), [](auto& each) { return each.begins_step; });
        const auto ended = std::count_if(launches_.begin(), launches_.end(), [](auto& each) { return each.ends_step; });
        if (may_join_gang_ && is_whole && begun == 1 && ended == 1 && launches_.front().begins_step) {
            try_to_join();
        } else {
            launches_ = {};
        }
    } catch (const std::exception& error) {
        by_graph_ = false;
        launches_ = {};
        if (needs_graph_) {
            throw Error(
                fmt::format("a step on {} cannot be captured as a graph, so it cannot take part in the sums of "
                            "the worker's ranks: {}",
                            stream_.facts().name, error.what()));
        }
        spdlog::warn("a step on {} cannot be captured as a graph and runs call by call: {}", stream_.facts().name,
                     error.what());
    }
}

void CudaCapturedStep::try_to_join() {
    try {
        gang_ = &stream_.shared()->gangs->join(*this);
    } catch (const std::exception& error) {
        launches_ = {};
        spdlog::warn("a step on {} runs alone, not in a gang: {}", stream_.facts().name, error.what());
    }
}

cudaEvent_t CudaCapturedStep::begin() {
    stream_.launch_before_next({});
    FINCH_CUDA(cudaEventRecord(begin_.get(), stream_.get()));
    return begin_.get();
}

void CudaCapturedStep::end(cudaEvent_t done, double fraction) {
    FINCH_CUDA(cudaStreamWaitEvent(stream_.get(), done, 0));
    FINCH_CUDA(cudaEventRecord(end_.get(), stream_.get()));
    fraction_ = fraction;
}

double CudaCapturedStep::seconds() const {
    if (failure_) {
        std::rethrow_exception(failure_);
    }
    float milliseconds = 0;
    FINCH_CUDA(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
    return 1e-3 * fraction_ * static_cast<double>(milliseconds);
}

}  // namespace finch::backend::cuda
