#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
// The CUDA device on the stand-in of its driver: graphs, step contexts, memory.
#include "finch/backend/cuda.hpp"
#include "finch/base/error.hpp"

#include "backend/make_device.hpp"
#include "libraries.hpp"
#include "resident_images.hpp"
#include "stream.hpp"
#include "support/rehearsal/control.hpp"
#include "support/rehearsal/kernel_launch.hpp"

#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <functional>
#include <numeric>
#include <vector>

using namespace finch;
using namespace finch::backend;
using finch::test::from_device;
using finch::test::on_device;

namespace {

/// Ten images of six pixels, all different, and their labels.
struct Data {
    std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(60);
    std::vector<std::int32_t> labels{0, 1, 2, 0, 1, 2, 0, 1, 2, 0};
    Data() { std::iota(pixels.begin(), pixels.end(), std::uint8_t{1}); }
    [[nodiscard]] Images images() const { return {.pixels = pixels, .labels = labels, .pixels_per_image = 6}; }
};

/// A step with everything that a context gives: load the batch, then the loss of the images' first three pixels as
/// logits.
class Step {
public:
    explicit Step(Device& device, const Data& data, CaptureAs how = CaptureAs::graph)
        : device_(device),
          context_(device.make_step_context(data.images(), 1)),
          pixels_(device.allocate(6)),
          step_(device.capture(
              [this] {
                  device_.next_step(*context_);
                  device_.load_batch(*context_, pixels_.data());
                  device_.softmax_cross_entropy(*context_, pixels_.data(), 3, nullptr);
              },
              how)) {}

    void fill(std::int64_t steps) {
        std::vector<std::int64_t> indices(static_cast<std::size_t>(steps));
        for (std::int64_t& index : indices) {
            index = next_++ % 10;
        }
        context_->fill(indices, std::vector<StepScalars>(indices.size()));
    }
    void run(std::int64_t steps) {
        fill(steps);
        step_->run(steps);
        device_.synchronize();
    }
    [[nodiscard]] LossSums sums() const { return context_->sums(); }

private:
    Device& device_;
    std::unique_ptr<StepContext> context_;
    Buffer pixels_;
    std::unique_ptr<CapturedStep> step_;
    std::int64_t next_ = 0;
};

bool same(const LossSums& a, const LossSums& b) {
    return a.loss == b.loss && a.correct == b.correct && a.samples == b.samples;
}

}  // namespace

TEST_CASE("graphs of one step and of many, mixed, do what calls do") {
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

TEST_CASE("a run asks and does not wait, not even the first one, which captures: who waits may have a deadline") {
    rehearsal::reset();
    const Data data;
    const auto device = make_cuda_device(0);
    Step step(*device, data);
    const int waits = rehearsal::calls("cudaStreamSynchronize") + rehearsal::calls("cudaEventSynchronize");

    step.run(70);

    CHECK(rehearsal::calls("cudaGraphLaunch") > 0);
    CHECK(rehearsal::calls("cudaStreamSynchronize") + rehearsal::calls("cudaEventSynchronize") == waits + 1);
}

TEST_CASE("work that is done late, or other streams' first, gives the same: nothing is read before") {
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

TEST_CASE("a step that cannot be captured is done call by call, and the stream is left as it was") {
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

TEST_CASE("no memory for a graph: the step is done call by call") {
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

TEST_CASE("a data set that does not fit is streamed, and gives the same batches") {
    rehearsal::reset();
    Data data;
    data.pixels.resize(std::size_t{3} << 20);
    data.labels.resize(data.pixels.size() / 6, 1);
    for (std::size_t i = 0; i < data.pixels.size(); ++i) {
        data.pixels[i] = static_cast<std::uint8_t>(i * 7 % 251);
    }
    const std::vector<std::int64_t> indices{5, 100'000, 17, -1, 524'287, 5};
    const auto batches = [&] {
        const auto device = make_cuda_device(0);
        const auto context = device->make_step_context(data.images(), 2);
        const Buffer out = device->allocate(12);
        std::vector<float> all;
        context->fill(indices, std::vector<StepScalars>(3));
        for (int step = 0; step < 3; ++step) {
            device->next_step(*context);
            device->load_batch(*context, out.data());
            const std::vector<float> batch = from_device(*device, out);
            all.insert(all.end(), batch.begin(), batch.end());
            device->softmax_cross_entropy(*context, out.data(), 6, nullptr);
        }
        device->synchronize();
        all.push_back(static_cast<float>(context->sums().loss));
        return all;
    };

    const std::vector<float> resident = batches();
    rehearsal::set_memory(std::size_t{8} << 20);
    const std::vector<float> streamed = batches();

    CHECK(resident == streamed);
    rehearsal::reset();
}

TEST_CASE("a data set lies on the device once, for all who use it and no longer") {
    rehearsal::reset();
    Data data;
    data.pixels.resize(600'000);
    data.labels.resize(100'000);
    const auto device = make_cuda_device(0);
    const auto beside = device->new_stream();
    const std::size_t before = rehearsal::device_bytes_in_use();

    auto first = device->make_step_context(data.images(), 1);
    const std::size_t with_one = rehearsal::device_bytes_in_use();
    auto second = beside->make_step_context(data.images(), 1);

    CHECK(with_one - before >= 1'000'000);
    CHECK(rehearsal::device_bytes_in_use() - with_one < 200'000);
    first.reset();
    second.reset();
    CHECK(rehearsal::device_bytes_in_use() == before);
}

TEST_CASE("out of memory at any allocation: std::bad_alloc, nothing leaks, and the device goes on") {
    rehearsal::reset();
    const Data data;
    const std::size_t device_before = rehearsal::device_bytes_in_use();
    const std::size_t pinned_before = rehearsal::pinned_bytes_in_use();
    int failures = 0;
    for (const char* function : {"cudaMallocFromPoolAsync", "cudaHostAlloc"}) {
        for (int nth = 1; nth < 20; ++nth) {
            const auto device = make_cuda_device(0);
            const std::int64_t free = device->free_bytes();
            rehearsal::fail(function, nth, cudaErrorMemoryAllocation);
            try {
                Step step(*device, data);
                const auto convolution = device->make(ConvolutionShape{
                    .batch = 2, .height = 8, .width = 8, .channels_in = 3, .channels_out = 4, .kernel = 3});
                const auto linear =
                    device->make(LinearShape{.batch = 2, .height = 2, .width = 2, .channels = 3, .units = 4});
            } catch (const std::bad_alloc&) {
                ++failures;
            }
            CHECK(device->free_bytes() == free);
            rehearsal::reset();
            Step step(*device, data);
            step.run(5);
            CHECK(step.sums().samples == 5);
        }
    }

    CHECK(failures > 6);
    CHECK(rehearsal::device_bytes_in_use() == device_before);
    CHECK(rehearsal::pinned_bytes_in_use() == pinned_before);
}

TEST_CASE("what an individual leaves is free for the next, without a call that waits for the device") {
    rehearsal::reset();
    const Data data;
    const auto device = make_cuda_device(0);
    const auto other = device->new_stream();
    const auto keeps_the_images = other->make_step_context(data.images(), 1);
    const std::int64_t free = device->free_bytes();
    { Step(*device, data).run(40); }
    const std::size_t pinned = rehearsal::pinned_bytes_in_use();
    for (int individual = 0; individual < 3; ++individual) {
        Step(*other, data).run(40);
    }

    CHECK(device->free_bytes() == free);
    CHECK(rehearsal::pinned_bytes_in_use() == pinned);
    CHECK(rehearsal::calls("cudaFree") + rehearsal::calls("cudaFreeHost") == 0);
}

TEST_CASE("memory that lies idle counts as free; the pool keeps at most half of the device's") {
    rehearsal::reset();
    rehearsal::set_memory(std::size_t{8} << 20);
    const auto device = make_cuda_device(0);
    const std::int64_t before = device->free_bytes();
    { const Buffer large = device->allocate(std::size_t{6} << 18); }  // 6 MiB
    CHECK(device->free_bytes() == before);

    std::size_t free = 0;
    std::size_t total = 0;
    REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
    CHECK(free >= total / 2);
    CHECK_NOTHROW(static_cast<void>(device->allocate(std::size_t{7} << 18)));
    rehearsal::reset();
}

TEST_CASE("a device without memory pools serves too") {
    rehearsal::reset();
    rehearsal::take_pools_away();
    const Data data;
    const std::size_t before = rehearsal::device_bytes_in_use();
    {
        const auto device = make_cuda_device(0);
        Step step(*device, data);
        step.run(5);
        CHECK(step.sums().samples == 5);
    }
    CHECK(rehearsal::device_bytes_in_use() == before);
    rehearsal::reset();
}

TEST_CASE("scratch memory that is too small is freed, but not what a graph knows; all of it goes with its operations") {
    rehearsal::reset();
    const auto shared = std::make_shared<cuda::Shared>(cuda::DeviceFacts{.name = "a GPU"});
    cuda::Stream stream(shared);
    const std::size_t before = rehearsal::device_bytes_in_use();
    auto first = stream.scratch(1000);
    const auto second = stream.scratch(3000);
    CHECK(first == second);
    CHECK(rehearsal::device_bytes_in_use() == before + 3000);

    stream.keep_scratch();
    const void* captured = first->get();
    const auto third = stream.scratch(5000);
    CHECK(third->get() != captured);
    CHECK(rehearsal::is_device_memory(captured, 3000));
    CHECK(rehearsal::device_bytes_in_use() == before + 8000);
}

TEST_CASE("scratch memory goes with its operations") {
    rehearsal::reset();
    const auto device = make_cuda_device(0);
    const std::size_t before = rehearsal::device_bytes_in_use();
    for (const std::int64_t batch : {4, 8, 16}) {
        const ConvolutionShape shape{.batch = batch, .height = 9, .width = 9, .channels_in = 4, .channels_out = 20};
        const auto operation = device->make(shape);
        const auto scratch = static_cast<std::size_t>(device->scratch_bytes(shape));
        CHECK(scratch > 1000);
        CHECK(rehearsal::device_bytes_in_use() >= before + scratch);
    }
    CHECK(rehearsal::device_bytes_in_use() == before);
}

namespace {

/// A kernel that asks for a lot of shared memory.
struct Wide {
    static constexpr int max_threads = 32;
    template <class Thread>
    void operator()(Thread& /*thread*/) const {}
};

}  // namespace

TEST_CASE("a kernel that is captured with much shared memory, then with less, is still allowed both") {
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

TEST_CASE("CUDA is asked for 32 hardware queues before its first call, unless the user has said how many") {
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

TEST_CASE("a failure of the device is told with the call and the place") {
    rehearsal::reset();
    const auto device = make_cuda_device(0);
    rehearsal::fail("cudaMemcpyAsync", 1, cudaErrorIllegalAddress);

    CHECK_THROWS_WITH_AS(static_cast<void>(on_device(*device, std::vector<float>{1})),
                         doctest::Contains("cudaMemcpyAsync"), ApiError);
}

TEST_CASE("devices are told with their names; none is no error") {
    rehearsal::reset();
    rehearsal::set_devices(2);
    const std::vector<DeviceDescription> two = cuda_devices();
    REQUIRE(two.size() == 2);
    CHECK(two[0].uuid == "GPU-00000000-0000-0000-0000-000000000001");
    CHECK(two[1].uuid == "GPU-00000000-0000-0000-0000-000000000002");
    CHECK(two[0].capability == 90);
    CHECK(two[0].reaches == std::vector<bool>{false, true});

    rehearsal::set_devices(0);
    CHECK(cuda_devices().empty());
    CHECK(cuda_device_count() == 0);
    CHECK(!cuda_versions().problem.empty());
    rehearsal::reset();
}
