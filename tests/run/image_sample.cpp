#include "finch/run/results.hpp"

#include <doctest/doctest.h>
#include <set>
#include <vector>

using namespace finch;

namespace {

/// A set of images with 2 × 2 pixels and two classes. Each pixel is the number of the image.
data::Dataset numbered_images(std::int64_t count) {
    data::Dataset set{.height = 2, .width = 2, .channels = 1, .classes = 2};
    for (std::int64_t image = 0; image < count; ++image) {
        set.labels.own().push_back(static_cast<std::int32_t>(image % 2));
        set.pixels.own().insert(set.pixels.own().end(), 4, static_cast<std::uint8_t>(image));
    }
    return set;
}

/// Results in which each guess is class 1, with a score of image / 1000.
run::Results results_on(const data::Dataset& set) {
    run::Results results;
    results.classification = report::Classification{.classes = 2};
    for (std::int64_t image = 0; image < set.samples(); ++image) {
        results.samples.push_back(image);
        results.labels.push_back(set.labels[static_cast<std::size_t>(image)]);
        results.measured.predictions.push_back(1);
        const float score = static_cast<float>(image) / 1000;
        results.measured.scores.insert(results.measured.scores.end(), {1 - score, score});
    }
    return results;
}

template <class T>
std::vector<T> sampled(const NamedArrays& arrays, const std::string& name) {
    return std::get<std::vector<T>>(find_array(arrays, "test/sample/" + name).values);
}

std::vector<std::int64_t> drawn_by(std::uint64_t seed, const data::Dataset& set) {
    NamedArrays arrays;
    run::set_image_sample(arrays, "test", results_on(set), set, seed);
    return sampled<std::int64_t>(arrays, "index");
}

}  // namespace

TEST_CASE("set_image_sample: each of 25 different images has its own pixels, truth, guess and score") {
    const data::Dataset set = numbered_images(200);
    NamedArrays arrays;

    run::set_image_sample(arrays, "test", results_on(set), set, 1);

    const auto index = sampled<std::int64_t>(arrays, "index");
    REQUIRE(index.size() == 25);
    CHECK(std::set(index.begin(), index.end()).size() == 25);
    for (std::size_t place = 0; place < index.size(); ++place) {
        CHECK(sampled<std::int64_t>(arrays, "truth")[place] == index[place] % 2);
        CHECK(sampled<std::int64_t>(arrays, "guess")[place] == 1);
        CHECK(sampled<float>(arrays, "score")[place] == static_cast<float>(index[place]) / 1000);
        CHECK(sampled<std::uint8_t>(arrays, "images")[4 * place + 3] == index[place]);
    }
}

TEST_CASE("set_image_sample: the seed alone draws the images, each about equally often") {
    const data::Dataset set = numbered_images(100);
    CHECK(drawn_by(7, set) == drawn_by(7, set));
    CHECK(drawn_by(7, set) != drawn_by(8, set));
    std::vector<int> counts(100);
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        for (const std::int64_t image : drawn_by(seed, set)) {
            ++counts[static_cast<std::size_t>(image)];
        }
    }
    for (const int count : counts) {  // expected: 400 · 25 / 100 = 100, with a deviation of √(400 · ¼ · ¾) = 8.7
        CHECK(count > 55);
        CHECK(count < 145);
    }
}

TEST_CASE("set_image_sample: takes all images of a small set, and nothing without scores or classes") {
    const data::Dataset set = numbered_images(3);
    CHECK(drawn_by(1, set) == std::vector<std::int64_t>{0, 1, 2});
    NamedArrays arrays;
    run::Results results = results_on(set);
    results.measured.scores.clear();
    run::set_image_sample(arrays, "test", results, set, 1);
    run::set_image_sample(arrays, "test", {}, set, 1);
    CHECK(arrays.empty());
}
