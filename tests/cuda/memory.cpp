// Tests of the CUDA device's memory on the stand-in of the driver: data sets, memory pool, scratch memory.
#include "finch/backend/cuda.hpp"

#include "backend/make_device.hpp"
#include "libraries.hpp"
#include "small_step.hpp"
#include "stream.hpp"
#include "support/rehearsal/control.hpp"

#include <doctest/doctest.h>
#include <memory>
#include <new>
#include <vector>

using namespace finch;
using namespace finch::backend;
using test::Data;
using test::from_device;
using test::Step;

TEST_CASE("a data set that does not fit into device memory is streamed, and gives the same batches") {
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

TEST_CASE("all contexts of a device share one copy of a data set, which is freed after the last context") {
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

TEST_CASE("if any allocation fails: std::bad_alloc is thrown, nothing leaks, and the device remains usable") {
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

TEST_CASE("memory of a finished individual is reused by the next, without a call that waits for the device") {
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

TEST_CASE("unused pool memory counts as free; the pool keeps at most half of the device's memory") {
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

TEST_CASE("four ranks on a device keep at most an eighth of its memory each") {
    rehearsal::reset();
    rehearsal::set_memory(std::size_t{8} << 20);
    const auto device = make_cuda_device(0, 4);
    { const Buffer large = device->allocate(std::size_t{6} << 18); }  // 6 MiB
    device->synchronize();

    std::size_t free = 0;
    std::size_t total = 0;
    REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
    CHECK(free >= total / 8 * 7);
    rehearsal::reset();
}

TEST_CASE("a device without memory pools works as well") {
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

TEST_CASE("scratch memory that is too small is freed unless a graph uses it; all is freed after the last use") {
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

TEST_CASE("scratch memory is freed with the operations that use it") {
    rehearsal::reset();
    const auto device = make_cuda_device(0);
    const std::size_t before = rehearsal::device_bytes_in_use();
    for (const std::int64_t batch : {4, 8, 16}) {
        const ConvolutionShape shape{.batch = batch, .height = 9, .width = 9, .channels_in = 4, .channels_out = 20};
        const auto operation = device->make(shape);
        const auto scratch = static_cast<std::size_t>(device->scratch_bytes(shape));
        CHECK(scratch > 1000);
        CHECK(rehearsal::device_bytes_in_use() >= before + scratch);
        // ModelPlan::bytes contains copies of the parameters for both passes and for their gradients.
        const auto copies = 3 * sizeof(float) * static_cast<std::size_t>(shape.weights() + shape.channels_out);
        CHECK(rehearsal::device_bytes_in_use() <=
              before + scratch + copies + static_cast<std::size_t>(device->kept_bytes(shape)));
    }
    CHECK(rehearsal::device_bytes_in_use() == before);
}
