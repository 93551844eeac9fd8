// Tests forecast() with searches that have a known duration.
#include "finch/run/forecast.hpp"

#include "finch/base/error.hpp"

#include "run/budgets.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <vector>

using namespace finch;
using namespace finch::run;

namespace {

const std::vector<SampledIndividual> hours_of_one(10, {.seconds = 3600, .epochs = 5});

Forecast of(const island::Budget& budget, const Workforce& workforce,
            const std::vector<SampledIndividual>& sample = hours_of_one) {
    return forecast(budget, workforce, sample, 1);
}

}  // namespace

TEST_CASE("if every evaluation takes one hour, the search takes as many hours as evaluations per worker") {
    CHECK(of(evaluations(40), {.workers = 4}).hours.median == doctest::Approx(10));
    CHECK(of(evaluations(41), {.workers = 4}).hours.median == doctest::Approx(11));
    CHECK(of(evaluations(3), {.workers = 4}).hours.median == doctest::Approx(1));
    CHECK(of(generations(7), {.workers = 4}).hours.median == doctest::Approx(7));
    CHECK(of(generations(7), {.workers = 4}).evaluations.median == 28);
    CHECK(of(epochs(100), {.workers = 4}).hours.median == doctest::Approx(5));
    CHECK(of(epochs(100), {.workers = 4}).evaluations.median == 20);
    CHECK(of(evaluations(40), {.workers = 2, .slots = 2}).hours.median == doctest::Approx(20));
}

TEST_CASE("budgets of hours and node-hours end the search, and unfinished evaluations are not counted") {
    CHECK(of(hours(2.5), {.workers = 4}).hours.median == doctest::Approx(2.5));
    CHECK(of(hours(2.5), {.workers = 4}).evaluations.median == 8);
    CHECK(of(budget(&island::Budget::node_hours, 5.0), {.workers = 4, .nodes = 2}).hours.median ==
          doctest::Approx(2.5));
    island::Budget both = evaluations(40);
    both.hours = 100;
    const Forecast either = of(both, {.workers = 4});
    CHECK(either.hours.median == doctest::Approx(10));
    CHECK(either.evaluations.median == 40);
}

TEST_CASE("long searches are extrapolated from their beginning") {
    CHECK(of(evaluations(4000000), {.workers = 4}).hours.median == doctest::Approx(1e6).epsilon(0.001));
    CHECK(of(epochs(20000000), {.workers = 4}).evaluations.median == doctest::Approx(4e6).epsilon(0.001));
    CHECK(of(hours(1e6), {.workers = 4}).evaluations.median == doctest::Approx(4e6).epsilon(0.001));
    CHECK(of(hours(1e6), {.workers = 4}).hours.median == doctest::Approx(1e6));
    CHECK(of(evaluations(400000), {.workers = 100, .slots = 10}).hours.median == doctest::Approx(4000).epsilon(0.01));
}

TEST_CASE("with different durations, the interval contains the expected value and is wider for few samples") {
    std::vector<SampledIndividual> few;
    for (int i = 1; i <= 8; ++i) {
        few.push_back({.seconds = 1000.0 * i, .epochs = 1});
    }
    std::vector<SampledIndividual> many;
    for (int copy = 0; copy < 20; ++copy) {
        many.insert(many.end(), few.begin(), few.end());
    }
    const double expected = 400 * 4500 / 3600.0 / 10;
    const Forecast rough = of(evaluations(400), {.workers = 10}, few);
    const Forecast fine = of(evaluations(400), {.workers = 10}, many);
    CHECK(rough.hours.low < expected);
    CHECK(rough.hours.high > expected);
    CHECK(fine.hours.median == doctest::Approx(expected).epsilon(0.05));
    CHECK(rough.hours.high - rough.hours.low > 2 * (fine.hours.high - fine.hours.low));
    CHECK(of(evaluations(400), {.workers = 10}, few).hours.median == rough.hours.median);
}

TEST_CASE("starts_of returns the number of job starts that a time limit requires") {
    CHECK(starts_of(1, 4 * 3600, 10, 180) == 1);
    CHECK(starts_of(4, 4 * 3600, 10, 180) == 2);
    CHECK(starts_of(39, 4 * 3600, 0, 0) == 10);
    CHECK(starts_of(40, 4 * 3600, 0, 0) == 10);
    CHECK(starts_of(0, 4 * 3600, 0, 180) == 1);
    CHECK(starts_of(1, 180, 0, 180) == 0);
}

TEST_CASE("forecast throws Error for a target loss alone and for an empty sample") {
    island::Budget target = budget(&island::Budget::target_loss, 0.1);
    CHECK(!is_foreseeable(target));
    CHECK_THROWS_AS((void)of(target, {}), Error);
    target.hours = 1;
    CHECK(is_foreseeable(target));
    CHECK_THROWS_AS((void)of(evaluations(1), {}, {}), Error);
}
