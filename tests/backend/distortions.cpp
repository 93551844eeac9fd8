// Tests of distorted images on every device: against a plain loop, against values from PyTorch
// (tools/fixtures/pytorch_fixtures.py), and of the distribution of the angles.
#include "finch/backend/device.hpp"

#include "backend/make_device.hpp"
#include "backend/tensors.hpp"
#include "nn/formula.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>
#include <numbers>
#include <numeric>
#include <set>
#include <utility>

using namespace finch;
using namespace finch::backend;
using test::from_device;
using test::make_device;

namespace {

TEST_CASE("load_batch: moves, mirroring and cutout of an image depend only on the key and the index in the batch") {
    const auto device = make_device();
    constexpr std::int64_t height = 7, width = 9, channels = 2, count = 40;
    constexpr std::int64_t size = height * width * channels;
    const std::vector<std::int32_t> labels(count);
    std::vector<std::uint8_t> pixels(count * size);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
        pixels[i] = static_cast<std::uint8_t>(1 + i % size);  // not black, and unique in its image
    }
    const Distortions distortions{.shift = 2, .mirrors = 1, .cutout = 3, .height = height, .width = width};
    const auto load = [&](std::int64_t first, std::int64_t batch, std::array<std::uint32_t, 2> key) {
        const auto context = device->make_step_context({.pixels = pixels,
                                                        .labels = labels,
                                                        .pixels_per_image = size,
                                                        .mean = {0, 0},
                                                        .deviation = {1.0F / 255, 1.0F / 255},
                                                        .distortions = distortions},
                                                       batch);
        std::vector<std::int64_t> indices(static_cast<std::size_t>(batch));
        std::iota(indices.begin(), indices.end(), first);
        context->fill(indices, std::vector<StepScalars>{{.random_key = key, .first_sample = first}});
        const Buffer out = device->allocate(static_cast<std::size_t>(batch * size));
        device->next_step(*context);
        device->load_batch(*context, out.data());
        return from_device(*device, out);
    };
    const std::vector<float> all = load(0, count, {3, 4});

    int mirrored = 0;
    std::set<std::pair<std::int32_t, std::int32_t>> moves;
    for (std::int64_t sample = 0; sample < count; ++sample) {
        const Distortion by = distortions.of({{3, 4}}, sample);
        mirrored += by.is_mirrored;
        moves.emplace(by.down, by.right);
        for (std::int64_t row = 0; row < height; ++row)
            for (std::int64_t column = 0; column < width; ++column)
                for (std::int64_t c = 0; c < channels; ++c) {
                    const bool cut = std::abs(row - by.cut_row) <= 1 && std::abs(column - by.cut_column) <= 1;
                    const std::int64_t from_row = row - by.down;
                    const std::int64_t moved = column - by.right;
                    const std::int64_t from_column = by.is_mirrored != 0 ? width - 1 - moved : moved;
                    const bool inside = from_row >= 0 && from_row < height && moved >= 0 && moved < width;
                    const double expected =
                        cut || !inside ? 0 : static_cast<double>(1 + (from_row * width + from_column) * channels + c);
                    const std::int64_t at = ((sample * height + row) * width + column) * channels + c;
                    CHECK(static_cast<double>(all[static_cast<std::size_t>(at)]) == doctest::Approx(expected));
                }
    }
    CHECK(mirrored > 8);
    CHECK(mirrored < 32);
    CHECK(moves.size() > 12);  // of 25 possible moves

    const std::vector<float> last = load(30, 10, {3, 4});
    CHECK(std::equal(last.begin(), last.end(), all.begin() + 30 * size));
    CHECK(load(0, count, {3, 5}) != all);
}

/// Returns the fixture's images as load_batch() loads them with `distortions`. The images are stored as bytes or as
/// floats with the same values.
std::vector<float> loaded(const Distortions& distortions, bool as_floats) {
    constexpr std::int64_t batch = 16, size = 9 * 12 * 2;
    const auto device = make_device();
    std::vector<std::uint8_t> bytes;
    for (std::uint64_t sample = 0; sample < batch; ++sample) {
        for (std::uint64_t i = 0; i < size; ++i) {
            bytes.push_back(static_cast<std::uint8_t>(test::word(test::Stream::pixel, 1, sample, i) & 255U));
        }
    }
    std::vector<float> floats;
    std::transform(bytes.begin(), bytes.end(), std::back_inserter(floats),
                   [](std::uint8_t byte) { return static_cast<float>(byte) / 255.0F; });
    const auto raw = std::as_bytes(std::span(floats));
    const std::span of_floats(reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size());
    const std::vector<std::int32_t> labels(batch);
    const auto context =
        device->make_step_context({.pixels = as_floats ? of_floats : std::span<const std::uint8_t>(bytes),
                                   .labels = labels,
                                   .pixels_per_image = size,
                                   .float_pixels = as_floats,
                                   .mean = {0, 0},
                                   .deviation = {1, 1},
                                   .distortions = distortions},
                                  batch);
    std::vector<std::int64_t> indices(batch);
    std::iota(indices.begin(), indices.end(), 0);
    context->fill(indices, std::vector<StepScalars>{{.random_key = {5, 6}}});
    const Buffer out = device->allocate(batch * size);
    device->next_step(*context);
    device->load_batch(*context, out.data());
    return from_device(*device, out);
}

TEST_CASE("load_batch: mirroring, rotation, move and cutout give the same images as PyTorch's operations") {
    test::Fixture fixture("distortions.bin");
    for (const auto& [degrees, shift, mirrors, cutout] :
         {std::array{180, 0, 0, 0}, std::array{30, 0, 0, 0}, std::array{30, 2, 1, 3}}) {
        const Distortions distortions{.shift = shift,
                                      .mirrors = mirrors,
                                      .cutout = cutout,
                                      .height = 9,
                                      .width = 12,
                                      .rotation = static_cast<float>(degrees * std::numbers::pi / 180)};
        const std::vector<float> expected = fixture.floats(16 * 9 * 12 * 2);
        for (const bool as_floats : {false, true}) {
            const std::vector<float> found = loaded(distortions, as_floats);
            float worst = 0;
            for (std::size_t i = 0; i < expected.size(); ++i) {
                worst = std::max(worst, std::abs(found[i] - expected[i]));
            }
            CHECK(worst < 1e-5F);
        }
    }
}

TEST_CASE("a rotation of 0 turns no image, and enabling rotation does not change the other distortions") {
    const Distortions before{.shift = 2, .mirrors = 1, .cutout = 3, .height = 9, .width = 12};
    Distortions now = before;
    now.rotation = 0.5F;
    for (std::int64_t place = 0; place < 100; ++place) {
        const Distortion plain = before.of({{1, 2}}, place);
        const Distortion turned = now.of({{1, 2}}, place);
        CHECK(plain.cosine == 1);
        CHECK(plain.sine == 0);
        CHECK(turned.sine != 0);
        CHECK(std::array{plain.down, plain.right, plain.is_mirrored, plain.cut_row, plain.cut_column} ==
              std::array{turned.down, turned.right, turned.is_mirrored, turned.cut_row, turned.cut_column});
    }
}

TEST_CASE("angles are uniform (Kolmogorov-Smirnov test) and not correlated with the moves") {
    constexpr double most = 0.7;
    constexpr int count = 4000;
    const Distortions distortions{.shift = 3, .height = 9, .width = 12, .rotation = static_cast<float>(most)};
    std::vector<double> angles;
    double together = 0;
    for (int i = 0; i < count; ++i) {
        const Distortion by = distortions.of({{static_cast<std::uint32_t>(i / 200), 9}}, i % 200);
        angles.push_back(std::atan2(static_cast<double>(by.sine), static_cast<double>(by.cosine)));
        together += angles.back() / most * by.down / 3;
        CHECK(by.cosine * by.cosine + by.sine * by.sine == doctest::Approx(1).epsilon(1e-6));
    }
    std::sort(angles.begin(), angles.end());

    double distance = 0;
    for (int i = 0; i < count; ++i) {
        const double uniform = (angles[static_cast<std::size_t>(i)] / most + 1) / 2;
        distance =
            std::max({distance, std::abs(uniform - double{1} * i / count), std::abs(uniform - (i + 1.0) / count)});
    }

    CHECK(distance < 1.63 / std::sqrt(count));  // 1 % of uniform samples exceed this
    CHECK(angles.front() < -0.99 * most);
    CHECK(angles.back() > 0.99 * most);
    CHECK(std::abs(together / count) < 0.03);  // the standard deviation is √(1/3 · 4/9 / 4000) = 0.006
}

}  // namespace
