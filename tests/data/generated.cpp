#include "files.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <limits>

namespace {

using namespace finch;
using namespace finch::test;
using data::Dataset;

constexpr std::size_t pixels = 28 * 28;

data::Datasets digits(std::int64_t samples, std::uint64_t seed = 1) {
    return data::load({.generated_samples = samples}, seed);
}

double squared_distance(const double* a, const std::uint8_t* b) {
    double sum = 0;
    for (std::size_t i = 0; i < pixels; ++i) {
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    }
    return sum;
}

/// Returns the share of `test` that a nearest-neighbour classifier labels correctly. `references` are flat images with
/// `labels`.
double nearest_accuracy(const std::vector<double>& references, const data::Elements<std::int32_t>& labels,
                        const Dataset& test) {
    std::int64_t right = 0;
    for (std::size_t image = 0; image < test.labels.size(); ++image) {
        double best = std::numeric_limits<double>::infinity();
        std::int32_t label = -1;
        for (std::size_t i = 0; i < labels.size(); ++i) {
            const double distance =
                squared_distance(references.data() + i * pixels, test.pixels.data() + image * pixels);
            if (distance < best) {
                best = distance;
                label = labels[i];
            }
        }
        right += label == test.labels[image] ? 1 : 0;
    }
    return static_cast<double>(right) / static_cast<double>(test.samples());
}

TEST_CASE("generated: an image depends only on the seed and the image's index, not on the number of images") {
    const data::Datasets few = digits(60);
    const data::Datasets many = digits(90);
    const data::Datasets other = digits(60, 2);

    CHECK(std::equal(few.training.pixels.begin(), few.training.pixels.end(), many.training.pixels.begin()));
    CHECK(std::equal(few.training.labels.begin(), few.training.labels.end(), many.training.labels.begin()));
    CHECK(few.training.pixels != other.training.pixels);
    CHECK(few.fingerprint == digits(60).fingerprint);
}

TEST_CASE("generated: there are a sixth as many test images, and they are not training images") {
    const data::Datasets sets = digits(60);

    CHECK(sets.training.samples() == 60);
    CHECK(sets.test.samples() == 10);
    CHECK(!std::equal(sets.test.pixels.begin(), sets.test.pixels.begin() + pixels, sets.training.pixels.begin()));
}

TEST_CASE("generated: the ten classes have about equal sizes") {
    const data::Datasets sets = digits(6000);
    std::array<int, 10> counts{};
    for (const std::int32_t label : sets.training.labels) {
        ++counts.at(static_cast<std::size_t>(label));
    }

    CHECK(sets.training.classes == 10);
    for (const int count : counts) {
        CHECK(std::abs(count - 600) < 6 * 23);  // six standard deviations of a binomial count
    }
}

TEST_CASE("generated: the nearest image classifies digits well, but the nearest class mean does not") {
    const data::Datasets sets = digits(3000);
    std::vector<double> means(10 * pixels);
    std::array<double, 10> counts{};
    for (std::size_t image = 0; image < 3000; ++image) {
        const auto label = static_cast<std::size_t>(sets.training.labels[image]);
        ++counts[label];
        for (std::size_t i = 0; i < pixels; ++i) {
            means[label * pixels + i] += sets.training.pixels[image * pixels + i];
        }
    }
    for (std::size_t i = 0; i < means.size(); ++i) {
        means[i] /= counts[i / pixels];
    }
    const std::vector<double> all(sets.training.pixels.begin(), sets.training.pixels.end());

    const double by_means = nearest_accuracy(means, std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, sets.test);
    const double by_neighbour = nearest_accuracy(all, sets.training.labels, sets.test);

    MESSAGE("nearest mean ", by_means, ", nearest neighbour ", by_neighbour);
    CHECK(by_means < 0.8);
    CHECK(by_neighbour > 0.75);
}

TEST_CASE("generated: edges are antialiased, and the image size is configurable") {
    const data::Datasets sets = data::load({.generated_samples = 6, .size = {64}}, 1);
    const auto between = std::count_if(sets.training.pixels.begin(), sets.training.pixels.end(),
                                       [](std::uint8_t value) { return value > 60 && value < 140; });

    CHECK(sets.training.height == 64);
    CHECK(sets.training.pixels.size() == 6 * 64 * 64);
    CHECK(between > 6 * 30);
}

TEST_CASE("generate: the written files read back as the same data") {
    const TemporaryFolder folder;
    const data::Options options{.generated_samples = 60};

    data::generate(options, 5, (folder.path() / "new" / "digits").string());
    const auto read = data::load({.kind = data::Kind::idx, .path = (folder.path() / "new" / "digits").string()}, 1);

    CHECK(read.fingerprint == data::load(options, 5).fingerprint);
}

}  // namespace
