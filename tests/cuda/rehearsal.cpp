// Tests of the stand-in of the CUDA driver: it must detect the errors for which the other tests rely on it.
#include "cuda/device_array.hpp"
#include "kernel_launch.hpp"
#include "support/rehearsal/control.hpp"

#include <doctest/doctest.h>
#include <vector>

using namespace finch;
using namespace finch::backend::cuda;
using finch::test::DeviceArray;
using rehearsal::Execution;

namespace {

/// Two streams, two events for dependencies between the streams, and the order in which their work ran.
struct Streams {
    UniqueStream first = make_stream();
    UniqueStream second = make_stream();
    UniqueEvent fork = make_event();
    UniqueEvent join = make_event();
    std::vector<int> did;

    void work(const UniqueStream& stream, int number) {
        rehearsal::submit(stream.get(), [this, number] { did.push_back(number); });
    }
    void second_waits() { wait(fork, first, second); }
    void first_waits() { wait(join, second, first); }

    static void wait(const UniqueEvent& event, const UniqueStream& of, const UniqueStream& waits) {
        FINCH_CUDA(cudaEventRecord(event.get(), of.get()));
        FINCH_CUDA(cudaStreamWaitEvent(waits.get(), event.get(), 0));
    }
};

void begin(const UniqueStream& stream) {
    FINCH_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
}
/// Ends a capture. Returns the error code, and the graph if there is one.
cudaError_t end(const UniqueStream& stream, UniqueGraph& graph) {
    cudaGraph_t made = nullptr;
    const cudaError_t code = cudaStreamEndCapture(stream.get(), &made);
    graph.reset(made);
    return code;
}
cudaError_t end(const UniqueStream& stream) {
    UniqueGraph graph;
    return end(stream, graph);
}

}  // namespace

TEST_CASE("late: a stream's work runs only in a call that waits for this stream") {
    rehearsal::reset();
    Streams streams;
    rehearsal::set_execution(Execution::late);

    streams.work(streams.first, 1);
    streams.work(streams.second, 2);
    CHECK(streams.did.empty());
    FINCH_CUDA(cudaStreamSynchronize(streams.second.get()));

    CHECK(streams.did == std::vector<int>{2});
    rehearsal::reset();
    CHECK(streams.did == std::vector<int>{2, 1});
}

TEST_CASE("cudaStreamWaitEvent orders the work before and after it; without this call, both orders occur") {
    for (const Execution execution : {Execution::late, Execution::others_first}) {
        for (const bool waits : {true, false}) {
            rehearsal::reset();
            Streams streams;
            rehearsal::set_execution(execution);

            streams.work(streams.first, 1);
            if (waits) {
                streams.second_waits();
            }
            streams.work(streams.second, 2);
            if (waits) {
                streams.first_waits();
            }
            streams.work(streams.first, 3);
            FINCH_CUDA(cudaStreamSynchronize(streams.first.get()));

            const std::vector<int> unordered =
                execution == Execution::late ? std::vector<int>{1, 3} : std::vector<int>{2, 1, 3};
            CHECK(streams.did == (waits ? std::vector<int>{1, 2, 3} : unordered));
            rehearsal::reset();
        }
    }
}

TEST_CASE("a graph keeps the order that its streams define, and no other order") {
    for (const Execution execution : {Execution::late, Execution::others_first}) {
        rehearsal::reset();
        Streams streams;
        UniqueGraph graph;
        begin(streams.first);
        streams.work(streams.first, 1);
        streams.second_waits();
        streams.work(streams.second, 2);
        streams.work(streams.first, 3);
        streams.first_waits();
        streams.work(streams.first, 4);
        REQUIRE(end(streams.first, graph) == cudaSuccess);
        CHECK(streams.did.empty());
        cudaGraphExec_t made = nullptr;
        FINCH_CUDA(cudaGraphInstantiate(&made, graph.get(), 0));
        const UniqueGraphExec exec(made);
        rehearsal::set_execution(execution);

        FINCH_CUDA(cudaGraphLaunch(exec.get(), streams.first.get()));
        FINCH_CUDA(cudaStreamSynchronize(streams.first.get()));

        CHECK(streams.did ==
              (execution == Execution::late ? std::vector<int>{1, 3, 2, 4} : std::vector<int>{1, 2, 3, 4}));
        rehearsal::reset();
    }
}

TEST_CASE("a capture with an unjoined second stream, a wait or an allocation is rejected") {
    rehearsal::reset();
    Streams streams;
    void* memory = nullptr;

    begin(streams.first);
    streams.second_waits();
    streams.work(streams.second, 1);
    CHECK(end(streams.first) == cudaErrorStreamCaptureUnjoined);

    begin(streams.first);
    streams.second_waits();
    streams.first_waits();
    streams.work(streams.second, 1);  // after the join
    CHECK(end(streams.first) == cudaErrorStreamCaptureUnjoined);

    begin(streams.first);
    CHECK(cudaStreamSynchronize(streams.first.get()) == cudaErrorStreamCaptureUnsupported);
    CHECK(end(streams.first) == cudaErrorStreamCaptureInvalidated);

    begin(streams.first);
    CHECK(cudaMalloc(&memory, 4) == cudaErrorStreamCaptureUnsupported);
    CHECK(end(streams.first) == cudaErrorStreamCaptureInvalidated);

    CHECK(streams.did.empty());
    begin(streams.first);
    CHECK(end(streams.first) == cudaSuccess);
}

TEST_CASE("an event that was recorded in a capture cannot be used outside of it") {
    rehearsal::reset();
    Streams streams;
    begin(streams.first);
    FINCH_CUDA(cudaEventRecord(streams.fork.get(), streams.first.get()));
    CHECK(end(streams.first) == cudaSuccess);

    CHECK(cudaStreamWaitEvent(streams.second.get(), streams.fork.get(), 0) == cudaErrorCapturedEvent);
    CHECK(cudaEventQuery(streams.fork.get()) == cudaErrorCapturedEvent);
}

TEST_CASE("copies beyond the end of an allocation are rejected") {
    rehearsal::reset();
    const DeviceArray<float> four({1, 2, 3, 4});
    const UniqueStream stream = make_stream();
    std::vector<float> host(5);

    CHECK(cudaMemcpyAsync(host.data(), four.data(), 20, cudaMemcpyDeviceToHost, stream.get()) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyAsync(four.data() + 1, host.data(), 16, cudaMemcpyHostToDevice, stream.get()) ==
          cudaErrorInvalidValue);
    CHECK(cudaMemcpyAsync(host.data(), host.data(), 4, cudaMemcpyHostToDevice, stream.get()) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyAsync(host.data(), four.data(), 16, cudaMemcpyDeviceToHost, stream.get()) == cudaSuccess);
    CHECK(host == std::vector<float>{1, 2, 3, 4, 0});
}

TEST_CASE("cudaEventElapsedTime fails until both events are complete") {
    rehearsal::reset();
    const UniqueStream stream = make_stream();
    const UniqueEvent begin = make_event(cudaEventDefault);
    const UniqueEvent end = make_event(cudaEventDefault);
    float milliseconds = -1;
    rehearsal::set_execution(Execution::late);

    FINCH_CUDA(cudaEventRecord(begin.get(), stream.get()));
    FINCH_CUDA(cudaEventRecord(end.get(), stream.get()));
    CHECK(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()) == cudaErrorNotReady);
    FINCH_CUDA(cudaEventSynchronize(end.get()));

    CHECK(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()) == cudaSuccess);
    CHECK(milliseconds >= 0);
    rehearsal::reset();
}
