// Replaces the CUDA runtime in tests: streams, events and graphs. Streams are queues of functions, which run
// immediately or late. The queues are independent, so a missing synchronisation changes results. As in CUDA, it is an
// error to wait within a capture, to end a capture with an unjoined stream, and to use a captured event elsewhere.
#include "support/rehearsal/kernel_entry.hpp"
#include "support/rehearsal/machine.hpp"

#include <algorithm>

using namespace finch::rehearsal;

struct CUstream_st {
    std::shared_ptr<Line> line = std::make_shared<Line>();
    std::shared_ptr<Capture> capture;
};
struct CUevent_st {
    Place place;                       ///< end of the stream's queue at the last cudaEventRecord()
    std::shared_ptr<Capture> capture;  ///< the capture that contains the last record, or null
    std::shared_ptr<double> seconds = std::make_shared<double>(0);
};
/// A captured graph. Its destructor clears its queues, because events may keep the queue objects alive.
struct Captured {
    std::shared_ptr<Line> origin;
    std::vector<std::shared_ptr<Line>> joined;

    Captured() = default;
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;
    ~Captured() {
        joined.push_back(origin);
        for (const auto& line : joined) {
            line->items.clear();
        }
    }
};
struct CUgraph_st {
    std::shared_ptr<const Captured> captured;
};
struct CUgraphExec_st {
    std::shared_ptr<const Captured> captured;
};

namespace finch::rehearsal {
namespace {

CUstream_st& of(cudaStream_t stream) {
    static auto* const standard = [] {
        auto* made = new CUstream_st;
        machine().lines.push_back(made->line);
        return made;
    }();
    return stream == nullptr ? *standard : *stream;
}

[[nodiscard]] bool is_reached(const Place& place) {
    return place.line == nullptr || place.line->done >= place.count;
}

/// Runs the items of a queue up to `count`, and the items of other queues for which they wait.
void run(Line& line, std::size_t count) {
    while (line.done < count) {
        const Item item = std::move(line.items.front());
        line.items.pop_front();
        if (item.awaited.line) {
            run(*item.awaited.line, item.awaited.count);
        } else {
            item.work();
        }
        ++line.done;
    }
}

/// Runs the queue of `place` up to this position. With Execution::others_first, runs all other queues first.
void reach(const Place& place) {
    if (machine().execution == Execution::others_first) {
        const auto lines = machine().lines;
        for (const auto& line : lines) {
            if (line != place.line) {
                run(*line, line->end());
            }
        }
    }
    if (place.line) {
        run(*place.line, place.count);
    }
}

void append(cudaStream_t stream, Item item) {
    CUstream_st& on = of(stream);
    Line& line = on.capture ? *on.capture->lines[stream] : *on.line;
    line.items.push_back(std::move(item));
    if (!on.capture && machine().execution == Execution::at_once) {
        run(line, line.end());
    }
}

Place end_of(cudaStream_t stream) {
    CUstream_st& on = of(stream);
    const auto& line = on.capture ? on.capture->lines[stream] : on.line;
    return {line, line->end()};
}

/// Orders the work of a graph as its queues allow. The work of the origin stream comes first, or that of the joined
/// streams.
class Sequence {
public:
    Sequence(const Captured& graph, bool joined_first) {
        if (joined_first) {
            for (const auto& line : graph.joined) {
                take(*line, line->end());
            }
        }
        take(*graph.origin, graph.origin->end());
        is_whole_ = std::all_of(graph.joined.begin(), graph.joined.end(),
                                [&](const auto& line) { return taken_[line.get()] == line->end(); });
    }
    [[nodiscard]] const std::vector<std::function<void()>>& work() const { return work_; }
    /// Returns whether the shared memory of each captured kernel is within the kernel's current limit.
    [[nodiscard]] bool is_allowed() const {
        return std::all_of(kernels_.begin(), kernels_.end(),
                           [](const Kernel& kernel) { return kernel.shared_bytes <= shared_limit(kernel.function); });
    }
    /// Returns whether the origin stream waits for all work of the joined streams.
    [[nodiscard]] bool is_whole() const { return is_whole_; }

private:
    void take(const Line& line, std::size_t count) {
        while (taken_[&line] < count) {
            const Item& item = line.items[taken_[&line]++];
            if (item.awaited.line) {
                take(*item.awaited.line, item.awaited.count);
            } else {
                work_.push_back(item.work);
                kernels_.push_back(item.kernel);
            }
        }
    }

    std::map<const Line*, std::size_t> taken_;
    std::vector<std::function<void()>> work_;
    std::vector<Kernel> kernels_;
    bool is_whole_ = false;
};

cudaError_t wait_in_capture(cudaStream_t stream, const CUevent_st& event) {
    CUstream_st& on = of(stream);
    if (event.capture->ended) {
        return remember(cudaErrorCapturedEvent);
    }
    if (on.capture && on.capture != event.capture) {
        return remember(cudaErrorStreamCaptureMerge);
    }
    if (!on.capture) {
        on.capture = event.capture;
        on.capture->lines[stream] = std::make_shared<Line>();
    }
    append(stream, {nullptr, event.place, {}});
    return cudaSuccess;
}

}  // namespace

bool is_capturing(cudaStream_t stream) {
    return of(stream).capture != nullptr;
}
cudaError_t refuse_in_capture() {
    machine().capture->invalid = true;
    return remember(cudaErrorStreamCaptureUnsupported);
}
void drain(cudaStream_t stream) {
    reach({of(stream).line, of(stream).line->end()});
}
void drain_all() {
    const auto lines = machine().lines;
    for (const auto& line : lines) {
        run(*line, line->end());
    }
}
void submit(cudaStream_t stream, std::function<void()> work) {
    append(stream, {std::move(work), {}, {}});
}
cudaError_t submit_kernel(cudaStream_t stream, const void* function, std::size_t shared_bytes,
                          std::function<void()> work) {
    if (shared_bytes > shared_limit(function)) {
        return remember(cudaErrorInvalidValue);
    }
    append(stream, {std::move(work), {}, {function, shared_bytes}});
    return cudaSuccess;
}
void block(cudaStream_t stream) {
    of(stream).line->blocked = true;
}

}  // namespace finch::rehearsal

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    REHEARSE(cudaStreamCreateWithFlags);
    *stream = new CUstream_st;
    machine().lines.push_back((*stream)->line);
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    REHEARSE(cudaStreamDestroy);
    drain(stream);
    std::erase(machine().lines, stream->line);
    delete stream;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    REHEARSE(cudaStreamSynchronize);
    if (is_capturing(stream)) {
        return refuse_in_capture();
    }
    if (of(stream).line->blocked && !machine().forgives) {
        fault("somebody waits without a deadline for a stream that never gets done");
    }
    drain(stream);
    release_pools();
    return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    REHEARSE(cudaStreamQuery);
    if (is_capturing(stream)) {
        return refuse_in_capture();
    }
    const Place place = end_of(stream);
    const bool is_done = is_reached(place) && !place.line->blocked;
    reach(place);
    return is_done ? cudaSuccess : cudaErrorNotReady;  // reach() has completed the work, so the next query succeeds
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    REHEARSE(cudaStreamWaitEvent);
    if (event->capture) {
        return wait_in_capture(stream, *event);
    }
    if (is_capturing(stream) && event->place.line) {
        machine().capture->invalid = true;
        return remember(cudaErrorStreamCaptureIsolation);
    }
    if (event->place.line) {
        of(stream).line->blocked = of(stream).line->blocked || event->place.line->blocked;
        append(stream, {nullptr, event->place, {}});
    }
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    REHEARSE(cudaStreamBeginCapture);
    if (is_capturing(stream) || machine().capture) {
        return remember(cudaErrorIllegalState);
    }
    machine().capture = std::make_shared<Capture>();
    machine().capture->origin = stream;
    machine().capture->lines[stream] = std::make_shared<Line>();
    of(stream).capture = machine().capture;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    const cudaError_t failure = called("cudaStreamEndCapture");
    *graph = nullptr;
    const std::shared_ptr<Capture> capture = of(stream).capture;
    if (!capture || capture->origin != stream) {
        return remember(cudaErrorIllegalState);
    }
    auto made = std::make_shared<Captured>();
    for (const auto& [member, line] : capture->lines) {
        of(member).capture = nullptr;
        if (member == stream) {
            made->origin = line;
        } else {
            made->joined.push_back(line);
        }
    }
    capture->lines.clear();
    capture->ended = true;
    machine().capture = nullptr;
    if (failure != cudaSuccess) {
        return failure;  // the capture ends even if the call fails
    }
    if (capture->invalid) {
        return remember(cudaErrorStreamCaptureInvalidated);
    }
    if (!Sequence(*made, false).is_whole()) {
        return remember(cudaErrorStreamCaptureUnjoined);
    }
    *graph = new CUgraph_st{std::move(made)};
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    REHEARSE(cudaEventCreateWithFlags);
    *event = new CUevent_st;
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    REHEARSE(cudaEventDestroy);
    delete event;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    REHEARSE(cudaEventRecord);
    event->capture = of(stream).capture;
    if (!event->capture) {
        submit(stream, [seconds = event->seconds] { *seconds = 1e-9 * static_cast<double>(device_nanoseconds()); });
    }
    event->place = end_of(stream);
    return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    REHEARSE(cudaEventQuery);
    if (event->capture) {
        return remember(cudaErrorCapturedEvent);
    }
    const bool is_done = is_reached(event->place) && (!event->place.line || !event->place.line->blocked);
    reach(event->place);
    return is_done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    REHEARSE(cudaEventSynchronize);
    if (event->capture) {
        return remember(cudaErrorCapturedEvent);
    }
    if (event->place.line && event->place.line->blocked && !machine().forgives) {
        fault("somebody waits without a deadline for an event that never comes");
    }
    reach(event->place);
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    REHEARSE(cudaEventElapsedTime);
    if (begin->place.line == nullptr || end->place.line == nullptr) {
        return remember(cudaErrorInvalidResourceHandle);
    }
    if (!is_reached(begin->place) || !is_reached(end->place)) {
        return remember(cudaErrorNotReady);
    }
    *milliseconds = static_cast<float>(1000 * (*end->seconds - *begin->seconds));
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
    REHEARSE(cudaGraphInstantiate);
    const Sequence sequence(*graph->captured, false);
    if (!sequence.is_allowed()) {
        return remember(cudaErrorInvalidValue);
    }
    machine().last_graph = sequence.work().size();
    *exec = new CUgraphExec_st{graph->captured};
    return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
    REHEARSE(cudaGraphUpload);
    return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
    REHEARSE(cudaGraphGetNodes);
    if (nodes != nullptr) {
        fault("the stand-in only counts the nodes of a graph");
    }
    *count = Sequence(*graph->captured, false).work().size();
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    REHEARSE(cudaGraphLaunch);
    const Sequence sequence(*exec->captured, machine().execution == Execution::others_first);
    for (const auto& work : sequence.work()) {
        submit(stream, work);
    }
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    REHEARSE(cudaGraphDestroy);
    delete graph;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    REHEARSE(cudaGraphExecDestroy);
    delete exec;
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
    REHEARSE(cudaDeviceSynchronize);
    drain_all();
    return cudaSuccess;
}

}  // extern "C"
