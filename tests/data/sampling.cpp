// Tests of the samples that an epoch uses. The tests count the samples.
#include "finch/data/sampling.hpp"

#include "finch/base/error.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <numeric>

namespace {

using namespace finch;
using namespace finch::data;

/// Returns systems with these numbers of samples, without pixels.
Dataset of_sizes(const std::vector<std::int64_t>& sizes) {
    Dataset set{.height = 1, .width = 1, .channels = 1, .classes = 2};
    std::int64_t end = 0;
    for (const std::int64_t size : sizes) {
        set.system_ends.own().push_back(end += size);
    }
    set.labels = std::vector<std::int32_t>(static_cast<std::size_t>(end));
    return set;
}

Options of_weights(const std::vector<double>& weights, std::int64_t validation) {
    Options options{.validation_samples = validation};
    for (std::size_t i = 0; i < weights.size(); ++i) {
        options.systems.push_back({"system" + std::to_string(i), weights[i]});
    }
    return options;
}

std::vector<SystemShare> shares(const std::vector<std::int64_t>& sizes, const std::vector<double>& weights) {
    const Dataset set = of_sizes(sizes);
    const Options options = of_weights(weights, 1);
    return shares_of(options, set, split(options, set, 3));
}

TEST_CASE("shares: are proportional to the weights (largest remainder); their sum is the number of training images") {
    const auto samples = [](const std::vector<std::int64_t>& sizes, const std::vector<double>& weights) {
        std::vector<std::int64_t> all;
        for (const SystemShare& share : shares(sizes, weights)) {
            all.push_back(share.samples);
        }
        return all;
    };
    // One image is for validation, so 100, 100, 10 and 7 images remain for training.
    CHECK(samples({60, 41}, {1, 3}) == std::vector<std::int64_t>{25, 75});
    CHECK(samples({60, 41}, {1, 2}) == std::vector<std::int64_t>{33, 67});
    CHECK(samples({5, 4, 2}, {1, 1, 1}) == std::vector<std::int64_t>{4, 3, 3});
    CHECK(samples({3, 3, 2}, {1e9, 1e9, 1e9}) == std::vector<std::int64_t>{3, 2, 2});
    // The exact shares of the 10 images are 5.55, 3.33 and 1.11.
    CHECK(samples({5, 4, 2}, {5, 3, 1}) == std::vector<std::int64_t>{6, 3, 1});
}

TEST_CASE("shares: contain the range of each system's training images; without weights, an epoch uses every image") {
    const Dataset set = of_sizes({50, 10, 40});
    Options options = of_weights({1, 1, 1}, 20);
    const Split parts = split(options, set, 3);
    const auto found = shares_of(options, set, parts);
    const std::vector<std::int64_t> ends{50, 60, 100};
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::int64_t place = found[i].begin; place < found[i].end; ++place) {
            const std::int64_t sample = parts.training[static_cast<std::size_t>(place)];
            CHECK(sample < ends[i]);
            CHECK(sample >= (i == 0 ? 0 : ends[i - 1]));
        }
    }
    CHECK(found[2].end == 80);

    for (System& system : options.systems) {
        system.weight.reset();
    }
    for (const SystemShare& share : shares_of(options, set, parts)) {
        CHECK(share.samples == share.end - share.begin);
    }
    CHECK(shares_of({.validation_samples = 1}, of_sizes({}), {.training = {0, 1, 2}, .validation = {}}) ==
          std::vector<SystemShare>{{0, 3, 3}});
}

TEST_CASE("epoch_order: for whole systems it is the permutation of all images, as without systems") {
    const std::vector<SystemShare> whole{{0, 60, 60}, {60, 100, 40}};

    CHECK(epoch_order(1, 2, 3, whole) == epoch_order(1, 2, 3, 100));
    CHECK(epoch_order(1, 2, 3, std::vector<SystemShare>{{0, 100, 100}}) == epoch_order(1, 2, 3, 100));
}

TEST_CASE("epoch_order: every system has its exact share, and its images are used equally often (within 1)") {
    const std::vector<SystemShare> some{{0, 61, 20}, {61, 71, 55}, {71, 100, 25}};
    std::vector<std::map<std::uint32_t, int>> seen(3);
    for (std::int64_t epoch = 0; epoch < 40; ++epoch) {
        const auto order = epoch_order(5, 77, epoch, some);
        REQUIRE(order.size() == 100);
        std::vector<std::int64_t> counts(3);
        std::vector<std::int64_t> in_first_half(3);
        for (std::size_t at = 0; at < order.size(); ++at) {
            const std::size_t system = order[at] < 61 ? 0 : order[at] < 71 ? 1 : 2;
            ++counts[system];
            in_first_half[system] += at < 50 ? 1 : 0;
            ++seen[system][order[at]];
        }
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(counts[i] == some[i].samples);
            CHECK(in_first_half[i] > 0);  // the systems are mixed
            CHECK(in_first_half[i] < some[i].samples);
            const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
            const auto [least, most] = std::minmax_element(seen[i].begin(), seen[i].end(), less);
            const bool all_seen = std::ssize(seen[i]) == some[i].end - some[i].begin;
            CHECK(most->second - (all_seen ? least->second : 0) <= 1);
        }
    }
    CHECK(seen[1].begin()->second == 220);  // 40 · 55 / 10
}

TEST_CASE("epoch_order: depends on seed, individual and epoch; systems of equal size have different orders") {
    const std::vector<SystemShare> some{{0, 50, 30}, {50, 100, 30}, {100, 140, 80}};
    const auto order = epoch_order(5, 77, 6, some);

    CHECK(order == epoch_order(5, 77, 6, some));
    CHECK(order != epoch_order(6, 77, 6, some));
    CHECK(order != epoch_order(5, 78, 6, some));
    CHECK(order != epoch_order(5, 77, 7, some));
    const auto of_system = [&order](std::uint32_t begin) {
        std::vector<std::uint32_t> places;
        for (const std::uint32_t place : order) {
            if (place >= begin && place < begin + 50) {
                places.push_back(place - begin);
            }
        }
        std::sort(places.begin(), places.end());
        return places;
    };
    CHECK(of_system(0) != of_system(50));
}

TEST_CASE("shares: a block has its weight, and its systems share it in proportion to their training images") {
    const auto samples = [](const std::vector<std::int64_t>& sizes, const std::vector<SystemBlock>& blocks) {
        const Dataset set = of_sizes(sizes);
        Options options = of_weights(std::vector<double>(sizes.size()), 1);
        for (System& system : options.systems) {
            system.weight.reset();
        }
        options.system_blocks = blocks;
        Split all{.training = {}, .validation = {}};
        for (std::int64_t sample = 0; sample < set.samples(); ++sample) {
            all.training.push_back(sample);
        }
        std::vector<std::int64_t> found;
        for (const SystemShare& share : shares_of(options, set, all)) {
            found.push_back(share.samples);
        }
        return found;
    };

    // As in DeePMD-kit: a block of weight w has w / (sum of all weights), and its systems n / (sum of n in the block).
    CHECK(samples({10, 30, 20, 40}, {{0, 2, 0.8}, {2, 4, 0.2}}) == std::vector<std::int64_t>{20, 60, 7, 13});
    CHECK(samples({10, 30, 20, 40}, {{0, 1, 3}, {1, 4, 1}}) == std::vector<std::int64_t>{75, 8, 6, 11});
    CHECK(samples({10, 30, 20, 40}, {{0, 4, 5}}) == std::vector<std::int64_t>{10, 30, 20, 40});
    CHECK_THROWS_WITH_AS((void)samples({50, 50}, {{0, 1, 1}, {1, 2, 1e-6}}),
                         doctest::Contains("data.auto_prob: a block gives system1 none of the 100"), ConfigError);
}

TEST_CASE("shares: a weight too small for one sample, or a system without training images, is rejected with the key") {
    CHECK_THROWS_WITH_AS((void)shares({60, 41}, {1, 1e-6}),
                         doctest::Contains("data.systems[1].weight: 1e-06 gives system1 none of the 100"), ConfigError);
    Dataset set = of_sizes({60, 2});
    set.validation = std::vector<std::int64_t>{60, 61};
    const Options options = of_weights({1, 1}, 1);
    CHECK_THROWS_WITH_AS((void)shares_of(options, set, split(options, set, 3)),
                         doctest::Contains("data.systems[1]: none of the images of system1 trains"), ConfigError);
}

}  // namespace
