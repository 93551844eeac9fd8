#include "finch/train/buckets.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::train;

namespace {

nn::ModelPlan tutorial(std::int64_t convolutions) {
    return nn::plan_model(
        {nn::ConvLayer{.channels = 10, .kernel = 3, .repeat = convolutions}, nn::FlattenLayer{}, nn::LinearLayer{}},
        {28, 28, 1}, 10, 16);
}

/// Returns a model of `layers` linear layers with 11 · 10 = 110 parameters each.
nn::ModelPlan equal_layers(std::int64_t layers) {
    return nn::plan_model({nn::FlattenLayer{}, nn::LinearLayer{.repeat = layers}}, {1, 1, 10}, 10, 1);
}

}  // namespace

TEST_CASE("buckets: the tutorial's linear layer is one bucket, all convolutions are another") {
    const BucketSchedule schedule(tutorial(6));

    REQUIRE(schedule.all().size() == 2);
    CHECK(schedule.all()[0] == Bucket{0, 78410});
    CHECK(schedule.all()[1] == Bucket{78410, 83060});
}

TEST_CASE("buckets: with DDP's size of the first bucket (1 MiB), all parameters would be one bucket") {
    const BucketSchedule schedule(tutorial(6), {.first_bytes = 1 << 20});

    CHECK(schedule.all().size() == 1);
}

TEST_CASE("buckets: contain whole layers up to the size limit, without gaps; the remaining layers come last") {
    const BucketSchedule schedule(equal_layers(6), {.first_bytes = 110 * 4, .later_bytes = 2 * 110 * 4 - 3});

    REQUIRE(schedule.all().size() == 4);
    CHECK(schedule.all()[0] == Bucket{0, 110});
    CHECK(schedule.all()[1] == Bucket{110, 330});
    CHECK(schedule.all()[2] == Bucket{330, 550});
    CHECK(schedule.all()[3] == Bucket{550, 660});
}

TEST_CASE("buckets: a layer of more than 1 GiB is sent in several messages") {
    const nn::ModelPlan plan = nn::plan_model({nn::FlattenLayer{}, nn::LinearLayer{}}, {1, 1, 1 << 18}, 2500, 1);
    const BucketSchedule schedule(plan);

    constexpr std::int64_t most = std::int64_t{1} << 28;
    const std::int64_t parameters = (std::int64_t{1 << 18} + 1) * 2500;
    REQUIRE(schedule.all().size() == 3);
    CHECK(schedule.all()[0] == Bucket{0, most});
    CHECK(schedule.all()[1] == Bucket{most, 2 * most});
    CHECK(schedule.all()[2] == Bucket{2 * most, parameters});
}

TEST_CASE("buckets: in every step, each bucket is returned once, as soon as it is complete") {
    BucketSchedule schedule(equal_layers(4), {.first_bytes = 1, .later_bytes = 2 * 110 * 4});

    for (int step = 0; step < 2; ++step) {
        CHECK(schedule.complete_until(109).empty());
        CHECK(schedule.complete_until(110).size() == 1);
        CHECK(schedule.complete_until(220).empty());
        const auto second = schedule.complete_until(330);
        REQUIRE(second.size() == 1);
        CHECK(second[0] == Bucket{110, 330});
        const auto rest = schedule.rest();
        REQUIRE(rest.size() == 1);
        CHECK(rest[0] == Bucket{330, 440});
    }
}

TEST_CASE("buckets: after a failed backward pass, rest() returns all buckets that were not sent") {
    BucketSchedule schedule(tutorial(6));

    CHECK(schedule.rest().size() == 2);
    CHECK(schedule.complete_until(78410).size() == 1);
    CHECK(schedule.rest().size() == 1);
}
