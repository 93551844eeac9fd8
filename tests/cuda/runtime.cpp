// Tests of the CUDA device on the stand-in of the driver: graphs, step contexts, and descriptions of devices.
#include "finch/backend/cuda.hpp"
#include "finch/base/error.hpp"

#include "backend/make_device.hpp"
#include "kernel_launch.hpp"
#include "small_step.hpp"
#include "stream.hpp"
#include "support/rehearsal/control.hpp"
#include "support/rehearsal/kernel_entry.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <functional>
#include <vector>

using namespace finch;
using namespace finch::backend;
using test::Data;
using test::on_device;
using test::same;
using test::Step;

TEST_CASE("graphs of one step and of many steps give the same results as calls") {
    rehearsal::reset();
    const Data data;
    const auto device = make_cuda_device(0);
    Step by_graph(*device, data);
    Step by_calls(*device, data, CaptureAs::calls);

    for (const std::int64_t steps : {1, 3, 31, 32, 33, 100, 2}) {
        CAPTURE(steps);
        by_graph.run(steps);
        by_calls.run(steps);
        CHECK(same(by_graph.sums(), by_calls.sums()));
    }
    CHECK(by_graph.sums().samples == 202);
    CHECK(rehearsal::calls("cudaGraphLaunch") > 0);
}

TEST_CASE("in the steady state a chunk of steps allocates nothing and waits once") {
    rehearsal::reset();
    const Data data;
    const auto device = make_cuda_device(0);
    Step step(*device, data);
    step.run(100);
    step.fill(96);
    const int allocations = rehearsal::calls("cudaMallocFromPoolAsync") + rehearsal::calls("cudaHostAlloc");
    const int waits = rehearsal::calls("cudaStreamSynchronize");
    const int launches = rehearsal::calls("cudaGraphLaunch");

    step.run(96);

    CHECK(rehearsal::calls("cudaMallocFromPoolAsync") + rehearsal::calls("cudaHostAlloc") == allocations);
    CHECK(rehearsal::calls("cudaStreamSynchronize") == waits + 1);
    CHECK(rehearsal::calls("cudaGraphLaunch") == launches + 3);
}

TEST_CASE("CapturedStep::run does not wait, not even in the first run, which captures the graph") {
    rehearsal::reset();
    const Data data;
    const auto device = make_cuda_device(0);
    Step step(*device, data);
    const int waits = rehearsal::calls("cudaStreamSynchronize") + rehearsal::calls("cudaEventSynchronize");

    step.run(70);

    CHECK(rehearsal::calls("cudaGraphLaunch") > 0);
    CHECK(rehearsal::calls("cudaStreamSynchronize") + rehearsal::calls("cudaEventSynchronize") == waits + 1);
}

TEST_CASE("delayed work, or other streams' work first, gives the same results: nothing is read too early") {
    rehearsal::reset();
    const Data data;
    const auto device = make_cuda_device(0);
    const auto beside = device->new_stream();
    Step at_once(*device, data);
    at_once.run(50);
    at_once.run(7);
    for (const auto execution : {rehearsal::Execution::late, rehearsal::Execution::others_first}) {
        rehearsal::set_execution(execution);
        Step late(*device, data);
        Step other(*beside, data);

        late.run(50);
        other.run(50);
        late.run(7);
        other.run(7);

        CHECK(same(late.sums(), at_once.sums()));
        CHECK(same(other.sums(), at_once.sums()));
        rehearsal::reset();
    }
}

TEST_CASE("a step that cannot be captured runs call by call, and the stream remains usable") {
    rehearsal::reset();
    const Data data;
    const auto device = make_cuda_device(0);
    Step expected(*device, data);
    expected.run(40);
    for (const char* function : {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate"}) {
        CAPTURE(function);
        Step step(*device, data);
        rehearsal::fail(function, 1, cudaErrorStreamCaptureUnsupported);

        step.run(40);

        CHECK(same(step.sums(), expected.sums()));
    }
}

TEST_CASE("a step in which other devices take part must be a graph; 32 steps need not be one graph") {
    rehearsal::reset();
    const Data data;
    const auto device = make_cuda_device(0);
    Step expected(*device, data);
    expected.run(70);
    Step none(*device, data, CaptureAs::graph_or_error);
    rehearsal::fail("cudaGraphInstantiate", 1, cudaErrorMemoryAllocation);
    CHECK_THROWS_WITH_AS(none.run(70), doctest::Contains("cannot be captured as a graph"), Error);
    Step single(*device, data, CaptureAs::graph_or_error);
    rehearsal::fail("cudaGraphInstantiate", 2, cudaErrorMemoryAllocation);

    single.run(70);

    CHECK(same(single.sums(), expected.sums()));
}

TEST_CASE("if there is no memory for a graph, the step runs call by call") {
    rehearsal::reset();
    const Data data;
    const auto device = make_cuda_device(0);
    Step expected(*device, data);
    expected.run(70);
    for (const int nth : {1, 2}) {
        Step step(*device, data);
        rehearsal::fail("cudaGraphInstantiate", nth, cudaErrorMemoryAllocation);

        step.run(70);

        CHECK(same(step.sums(), expected.sums()));
    }
}

namespace {

/// A kernel that is launched with much shared memory.
struct Wide {
    static constexpr int max_threads = 32;
    template <class Thread>
    void operator()(Thread& /*thread*/) const {}
};

}  // namespace

TEST_CASE("a kernel that is captured with much shared memory, then with less, may use both sizes") {
    rehearsal::reset();
    const cuda::UniqueStream stream = cuda::make_stream();
    REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    for (const std::size_t kibibytes : {200, 60, 10}) {
        const cuda::Grid grid{.threads = 32, .shared_bytes = kibibytes * 1024};
        CHECK(cuda::launch(stream.get(), grid, Wide{}) == cudaSuccess);
    }
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
    const cuda::UniqueGraph owner(graph);
    cudaGraphExec_t exec = nullptr;

    CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);

    const cuda::UniqueGraphExec exec_owner(exec);
    const cuda::Grid too_much{.threads = 32, .shared_bytes = 300 * 1024};
    CHECK(cuda::launch(stream.get(), too_much, Wide{}) != cudaSuccess);
    static_cast<void>(cudaGetLastError());
}

TEST_CASE("CUDA_DEVICE_MAX_CONNECTIONS is set to 32 before the first CUDA call, unless the user has set it") {
    const auto first_calls = {std::function<void()>([] { static_cast<void>(cuda_device_count()); }),
                              std::function<void()>([] { static_cast<void>(cuda_devices()); }),
                              std::function<void()>([] { static_cast<void>(cuda_versions()); }),
                              std::function<void()>([] { static_cast<void>(make_cuda_device(0)); })};
    for (const auto& call : first_calls) {
        ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
        rehearsal::reset();
        call();
        CHECK(rehearsal::queues_asked_for() == "32");

        ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
        rehearsal::reset();
        call();
        CHECK(rehearsal::queues_asked_for() == "4");
    }
}

TEST_CASE("an error of the device is reported with the failed call") {
    rehearsal::reset();
    const auto device = make_cuda_device(0);
    rehearsal::fail("cudaMemcpyAsync", 1, cudaErrorIllegalAddress);

    CHECK_THROWS_WITH_AS(static_cast<void>(on_device(*device, std::vector<float>{1})),
                         doctest::Contains("cudaMemcpyAsync"), ApiError);
}

TEST_CASE("cuda_devices() describes every device; without a device it is empty and throws nothing") {
    rehearsal::reset();
    rehearsal::set_devices(2);
    const std::vector<DeviceDescription> two = cuda_devices();
    REQUIRE(two.size() == 2);
    CHECK(two[0].uuid == "GPU-00000000-0000-0000-0000-000000000001");
    CHECK(two[1].uuid == "GPU-00000000-0000-0000-0000-000000000002");
    CHECK(two[0].capability == 90);
    CHECK(two[0].reaches == std::vector<bool>{false, true});
    rehearsal::set_device_name("NVIDIA A100-SXM4-40GB MIG 3g.20gb");
    CHECK(cuda_devices().at(1).uuid == "MIG-00000000-0000-0000-0000-000000000002");

    rehearsal::set_devices(0);
    CHECK(cuda_devices().empty());
    CHECK(cuda_device_count() == 0);
    CHECK(!cuda_versions().problem.empty());
    rehearsal::reset();
}
