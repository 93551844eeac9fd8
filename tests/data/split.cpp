#include "finch/base/error.hpp"
#include "finch/data/dataset.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <numeric>
#include <set>

namespace {

using namespace finch;

data::Options options(std::optional<std::int64_t> training, std::int64_t validation) {
    return {.training_samples = training, .validation_samples = validation};
}

/// Returns a set with this number of samples.
data::Dataset set_of(std::size_t samples) {
    data::Dataset set;
    set.labels.own().resize(samples);
    return set;
}

TEST_CASE("split: training and validation samples are disjoint, and together they are all samples") {
    const data::Split split = data::split(options({}, 30), set_of(100), 7);

    std::set<std::int64_t> both(split.training.begin(), split.training.end());
    both.insert(split.validation.begin(), split.validation.end());
    CHECK(split.training.size() == 70);
    CHECK(split.validation.size() == 30);
    CHECK(both.size() == 100);
    CHECK(*both.begin() == 0);
    CHECK(*both.rbegin() == 99);
}

TEST_CASE("split: if the set marks validation samples, exactly these validate") {
    data::Dataset set = set_of(100);
    set.validation.own() = {3, 50, 99};
    const data::Split split = data::split(options({}, 30), set, 7);

    CHECK(split.validation == std::vector<std::int64_t>{3, 50, 99});
    CHECK(split.training.size() == 97);
    CHECK(std::set<std::int64_t>(split.training.begin(), split.training.end()).size() == 97);
    for (const std::int64_t sample : split.validation) {
        CHECK(std::find(split.training.begin(), split.training.end(), sample) == split.training.end());
    }
    const data::Split few = data::split(options(20, 30), set, 7);
    CHECK(few.training.size() == 20);
    CHECK(std::includes(split.training.begin(), split.training.end(), few.training.begin(), few.training.end()));
    set.validation.own().resize(100);
    CHECK_THROWS_WITH_AS((void)data::split(options({}, 30), set, 1), doctest::Contains("data.validation:"),
                         ConfigError);
}

TEST_CASE("split: fewer training samples are a subset of more; the validation samples stay the same") {
    const data::Split large = data::split(options({}, 30), set_of(100), 7);
    const data::Split small = data::split(options(20, 30), set_of(100), 7);

    CHECK(small.validation == large.validation);
    CHECK(small.training.size() == 20);
    CHECK(std::includes(large.training.begin(), large.training.end(), small.training.begin(), small.training.end()));
}

TEST_CASE("split: the same seed gives the same split, another seed gives another") {
    CHECK(data::split(options({}, 30), set_of(100), 7).validation ==
          data::split(options({}, 30), set_of(100), 7).validation);
    CHECK(data::split(options({}, 30), set_of(100), 7).validation !=
          data::split(options({}, 30), set_of(100), 8).validation);
}

TEST_CASE("split: too few samples are rejected; the message has the key and the available number") {
    CHECK_THROWS_WITH_AS((void)data::split(options({}, 100), set_of(100), 1),
                         doctest::Contains("data.validation_samples"), ConfigError);
    CHECK_THROWS_WITH_AS((void)data::split(options(71, 30), set_of(100), 1),
                         doctest::Contains("data.training_samples: 71 samples asked for, but 100 less 30"),
                         ConfigError);
    CHECK(data::split(options(70, 30), set_of(100), 1).training.size() == 70);
}

TEST_CASE("epoch_order: returns a permutation that depends only on seed, individual and epoch") {
    const auto order = data::epoch_order(1, 2, 3, 1000);
    auto sorted = order;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::uint32_t> all(1000);
    std::iota(all.begin(), all.end(), 0U);

    CHECK(sorted == all);
    CHECK(order == data::epoch_order(1, 2, 3, 1000));
    CHECK(order != data::epoch_order(2, 2, 3, 1000));
    CHECK(order != data::epoch_order(1, 3, 3, 1000));
    CHECK(order != data::epoch_order(1, 2, 4, 1000));
}

TEST_CASE("share_of: the ranks' shares cover a batch once, in order; none exceeds the rounded-up mean") {
    for (const std::int64_t count : {0, 1, 2, 7, 16, 17}) {
        for (const int ranks : {1, 2, 3, 5, 20}) {
            std::int64_t next = 100;
            for (int rank = 0; rank < ranks; ++rank) {
                const data::Share share = data::share_of(100, 100 + count, rank, ranks);
                CHECK(share.begin == next);
                CHECK(share.end >= share.begin);
                CHECK(share.end - share.begin <= (count + ranks - 1) / ranks);
                next = share.end;
            }
            CHECK(next == 100 + count);
        }
    }
}

}  // namespace
