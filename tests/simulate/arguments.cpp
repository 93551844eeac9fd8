#include "simulate/arguments.hpp"

#include "finch/base/error.hpp"

#include <doctest/doctest.h>
#include <map>

using namespace finch;
using namespace finch::simulate;

namespace {

std::vector<double> none_recorded(const std::string& run) {
    throw ConfigError("asked for " + run);
}

search::PretendedDuration durations(const std::string& text) {
    return parse_durations(text, none_recorded);
}

}  // namespace

TEST_CASE("parse_durations: `lognormal` has a median and a spread, `constant` has spread 0") {
    CHECK(durations("lognormal:60,0.5").median_seconds == 60);
    CHECK(durations("lognormal:60,0.5").spread == 0.5);
    CHECK(durations("lognormal:0.25,0").spread == 0);
    CHECK(durations("constant:1e3").median_seconds == 1000);
    CHECK(durations("constant:1e3").spread == 0);
}

TEST_CASE("parse_durations: `recorded` draws the durations of a recorded run with equal probability") {
    const auto drawn = parse_durations("recorded:runs/a:b", [](const std::string& run) {
        CHECK(run == "runs/a:b");
        return std::vector<double>{1, 2, 4};
    });
    std::map<double, int> counts;
    for (std::uint64_t id = 0; id < 3000; ++id) {
        ++counts[drawn.seconds(7, {id})];
    }
    REQUIRE(counts.size() == 3);
    for (const double seconds : {1.0, 2.0, 4.0}) {
        CHECK(counts[seconds] == doctest::Approx(1000).epsilon(0.12));  // 4.6 standard deviations
    }
    CHECK_THROWS_WITH_AS((void)parse_durations("recorded:a", [](const std::string&) { return std::vector<double>(); }),
                         doctest::Contains("--durations: a: no evaluation"), ConfigError);
}

TEST_CASE("recorded_seconds: the time from start to end, or only the training time if a later start finished it") {
    search::Population population(search::ExchangeKind::none, 1);
    const auto add = [&](std::uint32_t number, double started, double finished, double trained) -> search::Individual {
        search::Individual one;
        one.id = search::Id::make(1, 0, number);
        one.outcome = search::Outcome::evaluated;
        one.loss = 1;
        one.started = started;
        one.finished = finished;
        one.training_seconds = trained;
        one.attempt = {.restart = 1, .worker = 0};
        return one;
    };
    search::Individual stopped = add(2, 1e9, 1e9 + 5000, 7);
    stopped.attempt.restart = 2;
    search::Individual old = add(3, 1e9, 1e9 + 5000, 8);  // from a version that recorded no attempts
    old.attempt = {};
    search::Individual impossible = add(4, 0, 1e9, 0);  // the network of its genome cannot be built
    impossible.outcome = search::Outcome::failed;
    search::Individual reused = add(5, 1e9, 1e9 + 1, 1);
    reused.reused_from = search::Id::make(1, 0, 1);
    search::Individual running = add(6, 1e9, 0, 3);
    running.outcome = search::Outcome::unfinished;
    for (const search::Individual& one : {add(1, 1e9, 1e9 + 4, 3), stopped, old, impossible, reused, running}) {
        population.merge(one);
    }

    CHECK(recorded_seconds(population) == std::vector<double>{4, 7, 8});
}

TEST_CASE("parse_durations: an invalid text throws an error that lists the accepted forms") {
    for (const char* text : {"",
                             "60",
                             "constant",
                             "constant:",
                             "constant:0",
                             "constant:-1",
                             "constant:nan",
                             "constant:inf",
                             "constant:1,2",
                             "constant:1s",
                             "lognormal:60",
                             "lognormal:60,",
                             "lognormal:60,-1",
                             "lognormal:60,nan",
                             "lognormal:60,0.5,1",
                             "normal:60,1",
                             "constant:1:2",
                             " constant:1",
                             "constant:2e9",
                             "lognormal:1,11",
                             "recorded",
                             "recorded:"}) {
        CAPTURE(text);
        CHECK_THROWS_WITH_AS((void)parse_durations(text, none_recorded), doctest::Contains("--durations: '"),
                             ConfigError);
        CHECK_THROWS_WITH_AS((void)parse_durations(text, none_recorded), doctest::Contains("lognormal:MEDIAN,SPREAD"),
                             ConfigError);
    }
}

TEST_CASE("parse_seeds: one seed, a range FIRST..LAST, or a list of both") {
    using Seeds = std::vector<std::uint64_t>;
    CHECK(parse_seeds("3") == Seeds{3});
    CHECK(parse_seeds("0..3") == Seeds{0, 1, 2, 3});
    CHECK(parse_seeds("7..7") == Seeds{7});
    CHECK(parse_seeds("5,1,8..9") == Seeds{5, 1, 8, 9});
    CHECK(parse_seeds("18446744073709551615..18446744073709551615") == Seeds{18446744073709551615U});
    CHECK(parse_seeds("1..100000").size() == 100000);
}

TEST_CASE("parse_seeds: an invalid text throws an error that lists the accepted forms") {
    for (const char* text : {"", "a", "-1", "1.5", "1..", "..3", "3..1", "1..2..3", "1,", "1...3", "1..100001", "1 ..2",
                             "0..18446744073709551615", "18446744073709551616"}) {
        CAPTURE(text);
        CHECK_THROWS_WITH_AS((void)parse_seeds(text), doctest::Contains("--seeds: '"), ConfigError);
        CHECK_THROWS_WITH_AS((void)parse_seeds(text), doctest::Contains("FIRST..LAST"), ConfigError);
    }
}
