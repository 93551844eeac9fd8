#include "finch/cluster/time_limit.hpp"

#include <doctest/doctest.h>

using namespace finch::cluster;

TEST_CASE("parse_time_limit: reads time limits in the formats of sbatch") {
    CHECK(parse_time_limit("30") == 1800.0);
    CHECK(parse_time_limit("30:20") == 1820.0);
    CHECK(parse_time_limit("1:30:20") == 5420.0);
    CHECK(parse_time_limit("01-12") == 129600.0);
    CHECK(parse_time_limit("1-12:30") == 131400.0);
    CHECK(parse_time_limit("1-00:00:05") == 86405.0);
    for (const char* const none : {"", "0", "0:0", "x", "1:", ":1", "1-", "-1", "1:2:3:4", "1-2-3", "1h", "1.5", " 1",
                                   "1-1:1:1:1", "99999999999"}) {
        CAPTURE(none);
        CHECK(!parse_time_limit(none).has_value());
    }
}

TEST_CASE("time_limit_text: rounds up to whole minutes") {
    CHECK(time_limit_text(60) == "0:01:00");
    CHECK(time_limit_text(61) == "0:02:00");
    CHECK(time_limit_text(7500) == "2:05:00");
    CHECK(time_limit_text(360000) == "100:00:00");
    CHECK(parse_time_limit(time_limit_text(7500)) == 7500.0);
}
