#include "finch/evaluate/command_evaluator.hpp"

#include <doctest/doctest.h>
#include <limits>

namespace finch::evaluate {

TEST_CASE("a leader waits a thousandth of what evaluations take for its programs, from 0.5 to 5 ms") {
    CHECK(wait_for_programs(2, 0) == doctest::Approx(0.002));
    CHECK(wait_for_programs(0.001, 0) == 0.0005);
    CHECK(wait_for_programs(3600, 0) == 0.005);
    CHECK(wait_for_programs(std::numeric_limits<double>::infinity(), 0) == 0.005);
}

TEST_CASE("a short evaluation before a long one does not keep a leader awake") {
    CHECK(wait_for_programs(0.001, 3) == doctest::Approx(0.003));
    CHECK(wait_for_programs(0.001, 60) == 0.005);
}

}  // namespace finch::evaluate
