#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
// The CUDA device on the stand-in of its driver: graphs, feeds, memory.
#include "finch/backend/cuda.hpp"
#include "finch/base/error.hpp"

#include "backend/make_device.hpp"
#include "support/rehearsal/control.hpp"

#include <cmath>
#include <doctest/doctest.h>
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

/// A step with everything that a feed gives: gather, then the loss of the images' first three pixels as logits.
class Step {
public:
    explicit Step(Device& device, const Data& data, Recording recording = Recording::graph)
        : device_(device),
          feed_(device.make_feed(data.images(), 1)),
          pixels_(device.allocate(6)),
          program_(device.record(
              [this] {
                  device_.gather(*feed_, pixels_.data());
                  device_.softmax_cross_entropy(*feed_, pixels_.data(), 3, nullptr);
              },
              recording)) {}

    void fill(std::int64_t steps) {
        std::vector<std::int64_t> indices(static_cast<std::size_t>(steps));
        for (std::int64_t& index : indices) {
            index = next_++ % 10;
        }
        feed_->fill(indices, std::vector<StepNumbers>(indices.size()));
    }
    void run(std::int64_t steps) {
        fill(steps);
        program_->run(steps);
        device_.synchronize();
    }
    [[nodiscard]] LossSums sums() const { return feed_->sums(); }
    [[nodiscard]] Feed& feed() { return *feed_; }

private:
    Device& device_;
    std::unique_ptr<Feed> feed_;
    Buffer pixels_;
    std::unique_ptr<Program> program_;
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
    Step by_calls(*device, data, Recording::calls);

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
    const int allocations = rehearsal::calls("cudaMalloc") + rehearsal::calls("cudaHostAlloc");
    const int waits = rehearsal::calls("cudaStreamSynchronize");
    const int launches = rehearsal::calls("cudaGraphLaunch");

    step.run(96);

    CHECK(rehearsal::calls("cudaMalloc") + rehearsal::calls("cudaHostAlloc") == allocations);
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
    const std::vector<std::int64_t> indices{5, 100'000, -1, 17, 524'287, 5};
    const auto batches = [&] {
        const auto device = make_cuda_device(0);
        const auto feed = device->make_feed(data.images(), 2);
        const Buffer out = device->allocate(12);
        std::vector<float> all;
        feed->fill(indices, std::vector<StepNumbers>(3));
        for (int step = 0; step < 3; ++step) {
            device->gather(*feed, out.data());
            const std::vector<float> batch = from_device(*device, out);
            all.insert(all.end(), batch.begin(), batch.end());
            device->softmax_cross_entropy(*feed, out.data(), 6, nullptr);
        }
        device->synchronize();
        all.push_back(static_cast<float>(feed->sums().loss));
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

    auto first = device->make_feed(data.images(), 1);
    const std::size_t with_one = rehearsal::device_bytes_in_use();
    auto second = beside->make_feed(data.images(), 1);

    CHECK(with_one - before >= 1'000'000);
    CHECK(rehearsal::device_bytes_in_use() - with_one < 200'000);
    first.reset();
    second.reset();
    CHECK(rehearsal::device_bytes_in_use() == before);
}

TEST_CASE("out of memory at any allocation: std::bad_alloc, nothing leaks, and the device goes on") {
    rehearsal::reset();
    const Data data;
    const auto device = make_cuda_device(0);
    const std::size_t device_before = rehearsal::device_bytes_in_use();
    const std::size_t pinned_before = rehearsal::pinned_bytes_in_use();
    int failures = 0;
    for (const char* function : {"cudaMalloc", "cudaHostAlloc"}) {
        for (int nth = 1; nth < 20; ++nth) {
            rehearsal::fail(function, nth, cudaErrorMemoryAllocation);
            try {
                Step step(*device, data);
                const auto convolution = device->convolution(
                    {.batch = 2, .height = 8, .width = 8, .channels_in = 3, .channels_out = 4, .kernel = 3});
                const auto linear = device->linear({.batch = 2, .height = 2, .width = 2, .channels = 3, .units = 4});
            } catch (const std::bad_alloc&) {
                ++failures;
            }
            CHECK(rehearsal::pinned_bytes_in_use() == pinned_before);
        }
    }
    rehearsal::reset();

    CHECK(failures > 6);
    Step step(*device, data);
    step.run(5);
    CHECK(step.sums().samples == 5);
    // What operations share of scratch memory stays with the stream.
    CHECK(rehearsal::device_bytes_in_use() - device_before < 1'000'000);
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
