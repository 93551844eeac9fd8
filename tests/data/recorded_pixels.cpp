#include "finch/data/recorded_pixels.hpp"

#include "finch/base/error.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::data;

TEST_CASE("recorded_images returns what record_pixels recorded, of classes and of targets") {
    const Dataset labelled{.height = 4, .width = 5, .channels = 2, .classes = 7};
    NamedArrays arrays{{"0.weight", {1}, std::vector<float>{1}}, {"data/shape", {1}, std::vector<std::int64_t>{9}}};

    record_pixels(arrays, labelled, {.mean = {0.5}, .deviation = {0.25, 0.125}});

    const RecordedImages images = recorded_images(arrays);
    CHECK(images.height == 4);
    CHECK(images.width == 5);
    CHECK(images.channels == 2);
    CHECK(images.outputs == 7);
    CHECK_FALSE(images.float_pixels);
    CHECK(images.normalisation == Normalisation{{0.5, 0.5}, {0.25, 0.125}});

    Dataset targets{.height = 1, .width = 1, .channels = 1, .target_size = 3, .float_pixels = true};
    targets.targets = std::vector<float>(6);
    record_pixels(arrays, targets, {});
    CHECK(recorded_images(arrays).outputs == 3);
    CHECK(recorded_images(arrays).float_pixels);
    CHECK(arrays.front().name == "0.weight");
}

TEST_CASE("recorded_images refuses a file that lacks a record or has another one") {
    NamedArrays arrays;
    CHECK_THROWS_AS((void)recorded_images(arrays), FileError);

    record_pixels(arrays, {.height = 1, .width = 1, .channels = 2, .classes = 2}, {});
    for (NamedArray& array : arrays) {
        const NamedArray before = array;
        array.values = std::vector<std::uint8_t>{1};
        CHECK_THROWS_AS((void)recorded_images(arrays), FileError);
        array = before;
    }
    CHECK_NOTHROW((void)recorded_images(arrays));
}
