#include "finch/simulate/arguments.hpp"

#include "finch/base/error.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::simulate;

TEST_CASE("durations are log-normal with a median and a spread, or constant") {
    CHECK(parse_durations("lognormal:60,0.5").median_seconds == 60);
    CHECK(parse_durations("lognormal:60,0.5").spread == 0.5);
    CHECK(parse_durations("lognormal:0.25,0").spread == 0);
    CHECK(parse_durations("constant:1e3").median_seconds == 1000);
    CHECK(parse_durations("constant:1e3").spread == 0);
}

TEST_CASE("what is no duration is named, with what is accepted") {
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
                             "lognormal:1,11"}) {
        CAPTURE(text);
        CHECK_THROWS_WITH_AS((void)parse_durations(text), doctest::Contains("--durations: '"), ConfigError);
        CHECK_THROWS_WITH_AS((void)parse_durations(text), doctest::Contains("lognormal:MEDIAN,SPREAD"), ConfigError);
    }
}

TEST_CASE("seeds are one, from the first to the last, or listed") {
    using Seeds = std::vector<std::uint64_t>;
    CHECK(parse_seeds("3") == Seeds{3});
    CHECK(parse_seeds("0..3") == Seeds{0, 1, 2, 3});
    CHECK(parse_seeds("7..7") == Seeds{7});
    CHECK(parse_seeds("5,1,8..9") == Seeds{5, 1, 8, 9});
    CHECK(parse_seeds("18446744073709551615..18446744073709551615") == Seeds{18446744073709551615U});
    CHECK(parse_seeds("1..100000").size() == 100000);
}

TEST_CASE("what are no seeds is named, with what is accepted") {
    for (const char* text : {"", "a", "-1", "1.5", "1..", "..3", "3..1", "1..2..3", "1,", "1...3", "1..100001", "1 ..2",
                             "0..18446744073709551615", "18446744073709551616"}) {
        CAPTURE(text);
        CHECK_THROWS_WITH_AS((void)parse_seeds(text), doctest::Contains("--seeds: '"), ConfigError);
        CHECK_THROWS_WITH_AS((void)parse_seeds(text), doctest::Contains("FIRST..LAST"), ConfigError);
    }
}
