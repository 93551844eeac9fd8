#include "finch/data/recorded_pixels.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::data;

namespace {

template <class Value>
std::vector<Value> values_of(const NamedArrays& arrays, const char* name) {
    return std::get<std::vector<Value>>(find_array(arrays, name).values);
}

}  // namespace

TEST_CASE("record_pixels records the images of a network, of classes and of targets, in place of earlier records") {
    const Dataset labelled{.height = 4, .width = 5, .channels = 2, .classes = 7};
    NamedArrays arrays{{"0.weight", {1}, std::vector<float>{1}}, {"data/shape", {1}, std::vector<std::int64_t>{9}}};

    record_pixels(arrays, labelled, {.mean = {0.5}, .deviation = {0.25, 0.125}});

    CHECK(values_of<std::int64_t>(arrays, "data/shape") == std::vector<std::int64_t>{4, 5, 2});
    CHECK(values_of<std::int64_t>(arrays, "data/outputs") == std::vector<std::int64_t>{7});
    CHECK(values_of<std::int64_t>(arrays, "data/float_pixels") == std::vector<std::int64_t>{0});
    CHECK(values_of<double>(arrays, "data/mean") == std::vector<double>{0.5, 0.5});
    CHECK(values_of<double>(arrays, "data/deviation") == std::vector<double>{0.25, 0.125});

    Dataset targets{.height = 1, .width = 1, .channels = 1, .target_size = 3, .float_pixels = true};
    targets.targets = std::vector<float>(6);
    record_pixels(arrays, targets, {});
    CHECK(values_of<std::int64_t>(arrays, "data/outputs") == std::vector<std::int64_t>{3});
    CHECK(values_of<std::int64_t>(arrays, "data/float_pixels") == std::vector<std::int64_t>{1});
    CHECK(arrays.front().name == "0.weight");
}
