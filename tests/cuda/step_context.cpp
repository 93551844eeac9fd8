// Tests of step contexts from the device's view: the memory that holds the images, and when it is filled.
#include "step_context.hpp"

#include "finch/base/error.hpp"
#include "finch/base/files.hpp"

#include "libraries.hpp"
#include "support/rehearsal/control.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <vector>

using namespace finch;
using namespace finch::backend;
using namespace finch::backend::cuda;
using rehearsal::Execution;

namespace {

constexpr Execution executions[] = {Execution::at_once, Execution::late, Execution::others_first};

/// Images that differ in their bytes, and their labels.
struct Data {
    std::int64_t pixels_per_image;
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> labels;

    Data(std::int64_t count, std::int64_t size)
        : pixels_per_image(size), pixels(static_cast<std::size_t>(count * size)) {
        for (std::int64_t image = 0; image < count; ++image) {
            labels.push_back(static_cast<std::int32_t>(100 + image));
            std::fill_n(pixels.begin() + image * size, size, static_cast<std::uint8_t>(image + 1));
        }
    }
    [[nodiscard]] Images images() const {
        return {.pixels = pixels, .labels = labels, .pixels_per_image = pixels_per_image};
    }
};

/// The image and label that a step's kernels read at an index of the context. Padding has no image and no label.
struct Seen {
    std::vector<std::uint8_t> pixels;
    std::int32_t label = -1;
    bool operator==(const Seen&) const = default;
};

template <class T>
std::vector<T> from_device(cudaStream_t stream, const T* from, std::size_t count) {
    std::vector<T> values(count);
    FINCH_CUDA(cudaMemcpyAsync(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost, stream));
    FINCH_CUDA(cudaStreamSynchronize(stream));
    return values;
}

std::vector<Seen> seen(Stream& stream, const CudaStepContext& context, std::size_t count) {
    const StepView& view = context.view();
    std::vector<Seen> all;
    for (const std::int64_t index : from_device(stream.get(), view.indices, count)) {
        Seen image;
        if (index >= 0) {
            image.pixels = from_device(stream.get(), view.pixels + index * view.pixels_per_image,
                                       static_cast<std::size_t>(view.pixels_per_image));
            image.label = from_device(stream.get(), static_cast<const std::int32_t*>(view.answers) + index, 1).front();
        }
        all.push_back(std::move(image));
    }
    return all;
}

std::vector<Seen> expected(const Data& data, const std::vector<std::int64_t>& indices) {
    std::vector<Seen> all;
    for (const std::int64_t index : indices) {
        Seen image;
        if (index >= 0) {
            image.pixels.assign(static_cast<std::size_t>(data.pixels_per_image), static_cast<std::uint8_t>(index + 1));
            image.label = static_cast<std::int32_t>(100 + index);
        }
        all.push_back(std::move(image));
    }
    return all;
}

std::shared_ptr<Shared> new_device() {
    return std::make_shared<Shared>(DeviceFacts{.name = "stand-in of a GPU"});
}

}  // namespace

TEST_CASE("streamed images use two pinned buffers alternately; a buffer is not overwritten before its copy") {
    const Data data(48, 1 << 20);  // four images per buffer
    const std::vector<std::int64_t> indices{47, 0,  3, -1, 3,  8,  21, 22, 23, 24, 25, -1,
                                            30, 31, 2, 1,  40, 41, 42, 43, 44, 5,  6,  -1};
    for (const Execution execution : executions) {
        rehearsal::reset();
        rehearsal::set_memory(std::size_t{130} << 20);  // 48 images exceed a third of this memory
        Stream stream(new_device());
        CudaStepContext context(stream, data.images(), 4);
        rehearsal::set_execution(execution);

        context.fill(indices, std::vector<StepScalars>(6));

        CHECK(seen(stream, context, indices.size()) == expected(data, indices));
        CHECK(rehearsal::pinned_bytes_in_use() < (std::size_t{10} << 20));
        rehearsal::reset();
    }
}

TEST_CASE("images in a file use the loader's pinned ring buffer; no part is overwritten before its copy") {
    const testing::TemporaryFolder folder;
    const Data data(48, 1000);
    const std::string path = (folder.path() / "pixels").string();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(data.pixels.data()), static_cast<std::streamsize>(data.pixels.size()));
    const std::vector<std::int64_t> indices{47, 0,  3, -1, 3,  8,  21, 22, 23, 24, 25, -1,
                                            30, 31, 2, 1,  40, 41, 42, 43, 44, 5,  6,  -1};
    for (const Execution execution : executions) {
        rehearsal::reset();
        Stream stream(new_device());
        Images images = data.images();
        images.pixels = {};
        images.store = std::make_shared<pixels::Store>(
            pixels::ImageSize{.values = 1000},
            std::vector<pixels::Piece>{{.path = path, .place = {.stride = 1000, .images = 48}}});
        images.prefetch = {.threads = 2, .batches = 2};
        CudaStepContext context(stream, images, 4);
        rehearsal::set_execution(execution);

        context.fill(indices, std::vector<StepScalars>(6));
        context.announce(std::vector<std::int64_t>{9, 9, 9, 9});
        CHECK(seen(stream, context, indices.size()) == expected(data, indices));
        const std::vector<std::int64_t> next{9, 9, 9, 9, 10, 11, 12, -1};
        context.fill(next, std::vector<StepScalars>(2));
        CHECK(seen(stream, context, next.size()) == expected(data, next));

        std::filesystem::resize_file(path, 4000);
        CHECK_THROWS_WITH_AS(context.fill(indices, std::vector<StepScalars>(6)), doctest::Contains("/pixels: "),
                             StorageError);
        const std::vector<std::int64_t> padding(8, -1);
        context.fill(padding, std::vector<StepScalars>(2));
        CHECK(seen(stream, context, padding.size()) == expected(data, padding));
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(data.pixels.data()), static_cast<std::streamsize>(data.pixels.size()));
        rehearsal::reset();
    }
}

TEST_CASE("streamed float images have their targets, of any size") {
    const std::int64_t size = 1 << 18;
    std::vector<float> values(static_cast<std::size_t>(48 * size));
    std::vector<float> targets;
    for (std::int64_t image = 0; image < 48; ++image) {
        std::fill_n(values.begin() + image * size, size, static_cast<float>(image) + 0.5F);
        targets.insert(targets.end(), {static_cast<float>(image), -static_cast<float>(image), 7});
    }
    const auto bytes = std::as_bytes(std::span(values));
    const Images images{.pixels = {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()},
                        .labels = {},
                        .targets = targets,
                        .pixels_per_image = size,
                        .target_size = 3,
                        .float_pixels = true};
    const std::vector<std::int64_t> indices{47, 0, 3, -1, 30, 31, 2, 1};
    for (const Execution execution : executions) {
        rehearsal::reset();
        rehearsal::set_memory(std::size_t{130} << 20);  // 48 images exceed a third of this memory
        Stream stream(new_device());
        CudaStepContext context(stream, images, 4);
        rehearsal::set_execution(execution);

        context.fill(indices, std::vector<StepScalars>(2));

        const StepView& view = context.view();
        const auto places = from_device(stream.get(), view.indices, indices.size());
        for (std::size_t i = 0; i < indices.size(); ++i) {
            REQUIRE((places[i] < 0) == (indices[i] < 0));
            if (places[i] >= 0) {
                const auto* const pixels = reinterpret_cast<const float*>(view.pixels) + places[i] * size;
                const auto found = from_device(stream.get(), pixels, static_cast<std::size_t>(size));
                CHECK(found == std::vector<float>(found.size(), static_cast<float>(indices[i]) + 0.5F));
                const auto first = targets.begin() + 3 * indices[i];
                CHECK(from_device(stream.get(), view.target(places[i], 3), 3) == std::vector<float>(first, first + 3));
            }
        }
        rehearsal::reset();
    }
}

TEST_CASE("a data set that one stream has copied can be used by all other streams") {
    const Data data(10, 7);
    const std::vector<std::int64_t> indices{9, 0, 4};
    for (const Execution execution : executions) {
        rehearsal::reset();
        rehearsal::set_execution(execution);
        const auto device = new_device();
        Stream first(device);
        Stream second(device);

        const auto brought = device->sets->get(first, data.images());
        CudaStepContext using_it(second, data.images(), 1);
        using_it.fill(indices, std::vector<StepScalars>(3));

        REQUIRE(brought != nullptr);
        CHECK(using_it.view().pixels == brought->pixels.get());
        CHECK(seen(second, using_it, 3) == expected(data, indices));
        rehearsal::reset();
    }
}

TEST_CASE("the same pixels with other labels are a different data set") {
    rehearsal::reset();
    const Data data(10, 7);
    const std::vector<std::int32_t> other_labels(10, 5);
    Images relabelled = data.images();
    relabelled.labels = other_labels;
    Stream stream(new_device());
    CudaStepContext first(stream, data.images(), 1);
    CudaStepContext second(stream, relabelled, 1);

    second.fill(std::vector<std::int64_t>{3}, std::vector<StepScalars>(1));

    CHECK(seen(stream, second, 1).front().label == 5);
}

TEST_CASE("fill accepts up to `capacity` steps of at most one batch each") {
    rehearsal::reset();
    const Data data(10, 7);
    Stream stream(new_device());
    for (const auto& [batch, capacity] :
         {std::pair<std::int64_t, std::int64_t>{1, 1024}, {64, 1024}, {1000, 65}, {100'000, 1}}) {
        CudaStepContext context(stream, data.images(), batch);
        const auto fill = [&, size = batch](std::int64_t steps, std::int64_t indices) {
            context.fill(std::vector<std::int64_t>(static_cast<std::size_t>(indices), -1),
                         std::vector<StepScalars>(static_cast<std::size_t>(steps)));
        };
        CAPTURE(batch);
        CHECK(context.capacity() == capacity);
        CHECK_NOTHROW(fill(capacity, capacity * batch));
        CHECK_THROWS_AS(fill(capacity + 1, (capacity + 1) * batch), Error);
        CHECK_THROWS_AS(fill(1, batch + 1), Error);
    }
}

TEST_CASE("set_sums: fill keeps the sums, and a refilled context begins with its first step") {
    for (const Execution execution : executions) {
        rehearsal::reset();
        rehearsal::set_execution(execution);
        const Data data(10, 7);
        Stream stream(new_device());
        CudaStepContext context(stream, data.images(), 2);
        CHECK(context.sums().samples == 0);
        context.set_sums({.loss = 2.5, .correct = 3, .samples = 1'000'000'000'000});
        StepState state;
        state.row = 7;
        FINCH_CUDA(cudaMemcpyAsync(&context.view().state->row, &state.row, sizeof state.row, cudaMemcpyHostToDevice,
                                   stream.get()));

        context.fill(std::vector<std::int64_t>{1, 2}, std::vector<StepScalars>(1));

        CHECK(context.sums().loss == 2.5);
        CHECK(context.sums().correct == 3);
        CHECK(context.sums().samples == 1'000'000'000'000);
        CHECK(from_device(stream.get(), &context.view().state->row, 1).front() == 0);
        rehearsal::reset();
    }
}
