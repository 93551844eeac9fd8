#include "finch/data/excerpt.hpp"

#include "finch/data/sampling.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::data;

namespace {

/// Returns images in which every pixel of image i is i.
Dataset numbered(std::int64_t samples) {
    Dataset set{.height = 2, .width = 3, .channels = 1, .classes = 5};
    for (std::int64_t sample = 0; sample < samples; ++sample) {
        set.labels.own().push_back(static_cast<std::int32_t>(sample % 5));
        set.pixels.own().insert(set.pixels.own().end(), 6, static_cast<std::uint8_t>(sample));
    }
    return set;
}

}  // namespace

TEST_CASE("excerpt: has the pixels and labels of the given samples, and marks the validation samples") {
    const std::vector<std::int64_t> training{7, 3, 40};
    const std::vector<std::int64_t> validation{1, 49};
    const Dataset some = excerpt(numbered(50), training, validation);

    CHECK(some.samples() == 5);
    CHECK(some.labels == Elements<std::int32_t>({2, 3, 0, 1, 4}));
    for (std::size_t sample = 0; sample < 5; ++sample) {
        const std::vector<std::uint8_t> numbers{7, 3, 40, 1, 49};
        CHECK(some.pixels[6 * sample] == numbers[sample]);
        CHECK(some.pixels[6 * sample + 5] == numbers[sample]);
    }
    const Split apart = split(Options{}, some, 1);
    CHECK(apart.training == std::vector<std::int64_t>{0, 1, 2});
    CHECK(apart.validation == std::vector<std::int64_t>{3, 4});
}

TEST_CASE("excerpt: has the targets of the given samples") {
    Dataset set{.height = 1, .width = 1, .channels = 1, .target_size = 2};
    set.pixels.own() = {5, 6, 7};
    set.targets.own() = {0, 1, 10, 11, 20, 21};

    const Dataset some = excerpt(set, std::vector<std::int64_t>{2}, std::vector<std::int64_t>{0});

    CHECK(some.targets == Elements<float>({20, 21, 0, 1}));
    CHECK(some.pixels == Elements<std::uint8_t>({7, 5}));
}
