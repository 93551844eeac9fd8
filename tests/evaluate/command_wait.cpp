#include "finch/evaluate/command_evaluator.hpp"

#include <doctest/doctest.h>
#include <limits>

namespace finch::evaluate {

TEST_CASE("wait_for_programs: the interval is a thousandth of an evaluation's time, between 0.5 and 5 ms") {
    CHECK(wait_for_programs(2, 0) == doctest::Approx(0.002));
    CHECK(wait_for_programs(0.001, 0) == 0.0005);
    CHECK(wait_for_programs(3600, 0) == 0.005);
    CHECK(wait_for_programs(std::numeric_limits<double>::infinity(), 0) == 0.005);
}

TEST_CASE("wait_for_programs: the interval also grows with the run time of the youngest running evaluation") {
    CHECK(wait_for_programs(0.001, 3) == doctest::Approx(0.003));
    CHECK(wait_for_programs(0.001, 60) == 0.005);
}

}  // namespace finch::evaluate
