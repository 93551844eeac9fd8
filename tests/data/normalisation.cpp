// Tests of the training samples' mean and deviation against their definition, computed in long double.
#include "finch/data/normalisation.hpp"

#include "finch/base/error.hpp"
#include "finch/hdf5/file.hpp"

#include "support/temporary_folder.hpp"

#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <random>

namespace {

using namespace finch;
using namespace finch::data;
using Bytes = std::vector<std::uint8_t>;

/// Computes the mean and the deviation of each channel in two passes, by their definition.
Normalisation by_definition(const std::vector<std::vector<long double>>& channels) {
    Normalisation result;
    for (const auto& pixels : channels) {
        long double mean = 0;
        for (const long double pixel : pixels) {
            mean += pixel / static_cast<long double>(pixels.size());
        }
        long double variance = 0;
        for (const long double pixel : pixels) {
            variance += (pixel - mean) * (pixel - mean) / static_cast<long double>(pixels.size());
        }
        result.mean.push_back(static_cast<double>(mean));
        result.deviation.push_back(static_cast<double>(std::sqrt(variance)));
    }
    return result;
}

void check_near(const Normalisation& found, const Normalisation& expected, double tolerance) {
    REQUIRE(found.mean.size() == expected.mean.size());
    for (std::size_t c = 0; c < found.mean.size(); ++c) {
        CHECK(found.mean[c] == doctest::Approx(expected.mean[c]).epsilon(tolerance));
        CHECK(found.deviation[c] == doctest::Approx(expected.deviation[c]).epsilon(tolerance));
    }
}

Dataset of_floats(const std::vector<float>& floats, std::int64_t channels, std::int64_t samples) {
    Dataset set{.height = 1,
                .width = static_cast<std::int64_t>(floats.size()) / channels / samples,
                .channels = channels,
                .float_pixels = true};
    Bytes bytes(floats.size() * sizeof(float));
    std::memcpy(bytes.data(), floats.data(), bytes.size());
    set.pixels = std::move(bytes);
    set.labels = std::vector<std::int32_t>(static_cast<std::size_t>(samples));
    return set;
}

TEST_CASE("moments: bytes are divided by 255; each channel is separate; only the given samples count") {
    std::mt19937 random(3);
    constexpr std::size_t samples = 50, plane = 35, channels = 3;
    Bytes bytes(samples * plane * channels);
    for (std::uint8_t& byte : bytes) {
        byte = static_cast<std::uint8_t>(random());
    }
    const Dataset set{.height = 5, .width = 7, .channels = channels, .classes = 2, .pixels = bytes};
    const std::vector<std::int64_t> some{1, 4, 30, 49};
    std::vector<std::vector<long double>> pixels(channels);
    for (const std::int64_t sample : some) {
        for (std::size_t i = 0; i < plane * channels; ++i) {
            const std::uint8_t byte = bytes[static_cast<std::size_t>(sample) * plane * channels + i];
            pixels[i % channels].push_back(static_cast<long double>(byte) / 255);
        }
    }

    check_near(moments(set, some), by_definition(pixels), 1e-14);
}

TEST_CASE("moments: exact for floats far from 0, for which sums of squares would lose all digits") {
    std::mt19937 random(4);
    std::normal_distribution<float> noise(0, 0.25F);
    std::vector<float> floats(3000);
    std::vector<long double> pixels;
    for (float& value : floats) {
        value = 65536 + noise(random);
        pixels.push_back(static_cast<long double>(value));
    }
    std::vector<std::int64_t> all(30);
    std::iota(all.begin(), all.end(), 0);

    const Normalisation found = moments(of_floats(floats, 1, 30), all);

    check_near(found, by_definition({pixels}), 1e-12);
    CHECK(found.deviation[0] == doctest::Approx(0.25).epsilon(0.1));
}

TEST_CASE("normalisation: a constant channel has exactly deviation 0 and is divided by 1") {
    std::vector<float> floats;
    for (int i = 0; i < 700; ++i) {
        floats.insert(floats.end(), {0.1F, static_cast<float>(i)});
    }
    const std::vector<std::int64_t> all{0, 1, 2, 3, 4, 5, 6};
    Dataset set = of_floats(floats, 2, 7);

    const Normalisation found = moments(set, all);
    set.measured_mean = found.mean;
    set.measured_deviation = found.deviation;

    CHECK(found.mean[0] == doctest::Approx(static_cast<double>(0.1F)).epsilon(1e-15));
    CHECK(found.deviation[0] == 0);
    CHECK(found.deviation[1] > 200);
    CHECK(normalisation_of({.mean = {}, .deviation = {}}, set).deviation == std::vector{1, found.deviation[1]});
    CHECK(normalisation_of({.mean = {}, .deviation = {5}}, set) == Normalisation{found.mean, {5, 5}});
    CHECK(normalisation_of({.mean = {1, 2}, .deviation = {1e-300}}, set) == Normalisation{{1, 2}, {1e-300, 1e-300}});
}

TEST_CASE("normalisation: a wrong number of values, or `auto` without measured values, is rejected with the key") {
    const Dataset set{.height = 1, .width = 1, .channels = 3};

    CHECK_THROWS_WITH_AS((void)normalisation_of({.mean = {1, 2}}, set),
                         doctest::Contains("data.normalize.mean: has 2 values, but the images have 3"), ConfigError);
    CHECK_THROWS_WITH_AS((void)normalisation_of({.deviation = {}}, set),
                         doctest::Contains("data.normalize.deviation: is auto"), ConfigError);
}

TEST_CASE("load: `auto` measures the split's training samples; the test set and the node's shared block get the same") {
    const Options options{.mean = {},
                          .deviation = {},
                          .training_samples = 70,
                          .validation_samples = 30,
                          .generated_samples = 120,
                          .size = {9}};

    const Datasets sets = load(options, 5);

    const Split parts = split(options, sets.training, 5);
    std::vector<long double> pixels;
    for (const std::int64_t sample : parts.training) {
        for (std::int64_t i = 0; i < 81; ++i) {
            pixels.push_back(static_cast<long double>(sets.training.pixels[static_cast<std::size_t>(sample * 81 + i)]) /
                             255);
        }
    }
    check_near(normalisation_of(options, sets.training), by_definition({pixels}), 1e-14);
    CHECK(sets.test.measured_mean == sets.training.measured_mean);
    CHECK(sets.test.measured_deviation == sets.training.measured_deviation);
    std::vector<std::byte> block(block_bytes(sets.training));
    write_block(sets.training, block);
    CHECK(normalisation_of(options, view_block(block)) == normalisation_of(options, sets.training));
    CHECK(load({.validation_samples = 30, .generated_samples = 120, .size = {9}}, 5).training.measured_mean.empty());
}

}  // namespace
