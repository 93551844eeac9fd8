// Tests of data.expect: check_expected() compares existing sets with it, and stand_in() replaces missing sets.
#include "finch/data/expected.hpp"

#include "finch/base/error.hpp"
#include "finch/data/normalisation.hpp"
#include "finch/data/sampling.hpp"

#include <doctest/doctest.h>
#include <numeric>
#include <set>

using namespace finch;
using namespace finch::data;

namespace {

Options options_with(const Expected& expected) {
    Options options{.kind = Kind::idx, .path = "data/there", .expect = expected};
    options.validation_samples = 10;
    return options;
}

/// Returns images in which every pixel of image i is i.
Dataset numbered(std::int64_t samples) {
    Dataset set{.height = 2, .width = 3, .channels = 1, .classes = 5};
    for (std::int64_t sample = 0; sample < samples; ++sample) {
        set.labels.own().push_back(static_cast<std::int32_t>(sample % 5));
        set.pixels.own().insert(set.pixels.own().end(), 6, static_cast<std::uint8_t>(sample));
    }
    return set;
}

const Expected as_numbered{.shape = {2, 3, 1}, .classes = 5, .samples = 50, .test = 10};

}  // namespace

TEST_CASE("data.expect: sets that match are accepted; for others the error names the differing key") {
    CHECK_NOTHROW(check_expected(options_with(as_numbered), numbered(50), numbered(10)));
    CHECK_NOTHROW(check_expected(Options{}, numbered(50), numbered(10)));
    const auto refused = [](Expected expected, const char* words) {
        CHECK_THROWS_WITH_AS(check_expected(options_with(expected), numbered(50), numbered(10)),
                             doctest::Contains(words), ConfigError);
    };
    Expected other = as_numbered;
    other.shape = {3, 2, 1};
    refused(other, "data.expect.shape: is [3, 2, 1], but data/there has [2, 3, 1]");
    other = as_numbered;
    other.classes = 6;
    refused(other, "data.expect.classes: is 6, but data/there has 5");
    other = as_numbered;
    other.samples = 60;
    refused(other, "data.expect.samples: is 60, but data/there has 50");
    other = as_numbered;
    other.test = 9;
    refused(other, "data.expect.test: is 9, but data/there has 10");
    other = as_numbered;
    other.validation = 3;
    refused(other, "data.expect.validation: is 3, but data/there has 0");
    other = as_numbered;
    other.classes.reset();
    other.targets = 2;
    refused(other, "data.expect.targets: is 2, but data/there has 0");
}

TEST_CASE("stand_in: has the expected numbers of samples and classes, but no pixels") {
    Options options = options_with(as_numbered);
    options.mean = {};
    options.deviation = {};
    const Datasets sets = stand_in(options);

    CHECK(is_stand_in(sets.training));
    CHECK(!is_stand_in(numbered(50)));
    CHECK(!is_stand_in(Dataset{}));
    CHECK(sets.training.samples() == 50);
    CHECK(sets.test.samples() == 10);
    CHECK(pixel_bytes(sets.training) == 300);
    CHECK(std::set<std::int32_t>(sets.training.labels.begin(), sets.training.labels.end()).size() == 5);
    CHECK(split(options, sets.training, 1).training.size() == 40);
    CHECK_NOTHROW((void)normalisation_of(options, sets.training));
    CHECK_NOTHROW(check_expected(options, sets.training, sets.test));

    Expected targets{.shape = {2, 3, 1}, .targets = 4, .samples = 50, .validation = 8};
    options = options_with(targets);
    options.validation = OwnValidation{};
    const Datasets numbers = stand_in(options);
    CHECK(numbers.training.outputs() == 4);
    CHECK(split(options, numbers.training, 1).validation.size() == 8);
    CHECK(split(options, numbers.training, 1).training.size() == 42);
    options.expect->validation.reset();
    CHECK_THROWS_WITH_AS((void)stand_in(options), doctest::Contains("data.expect.validation"), ConfigError);
}

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

TEST_CASE("excerpt: an excerpt of a stand-in has random pixels, and targets of the expected size") {
    const Expected expected{.shape = {2, 3, 1}, .targets = 4, .samples = 50};
    const Dataset some = excerpt(stand_in(options_with(expected)).training, std::vector<std::int64_t>{1, 2},
                                 std::vector<std::int64_t>{30});
    CHECK(some.samples() == 3);
    CHECK(some.targets.size() == 12);
    CHECK(some.pixels.size() == 18);
    CHECK(std::set<std::uint8_t>(some.pixels.begin(), some.pixels.end()).size() > 10);
}
