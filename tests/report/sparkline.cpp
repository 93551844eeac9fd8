#include "finch/report/sparkline.hpp"

#include <doctest/doctest.h>
#include <vector>

using namespace finch;
using report::best_so_far;
using report::sparkline;

namespace {

/// A population in which individual i ends at second i.
search::Population ended_in_turn(const std::vector<double>& losses) {
    search::Population population(search::ExchangeKind::none, 1);
    for (std::uint32_t i = 0; i < losses.size(); ++i) {
        search::Individual one;
        one.id = search::Id::make(0, i % 2, 100 - i);
        one.outcome = std::isnan(losses[i]) ? search::Outcome::failed : search::Outcome::evaluated;
        one.loss = losses[i];
        one.finished = i;
        population.merge(one);
    }
    return population;
}

const double failed = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("sparkline: the smallest value is the lowest character, on a logarithmic scale") {
    CHECK(sparkline(std::vector{128.0, 64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0}, true) == "█▇▆▅▄▃▂▁");
    CHECK(sparkline(std::vector{128.0, 64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0}, false) == "#*+=~-._");
}

TEST_CASE("sparkline: values that are not positive have a linear scale; equal values and no values are no error") {
    CHECK(sparkline(std::vector{7.0, 0.0, 3.5}, false) == "#_=");
    CHECK(sparkline(std::vector{2.0, 2.0}, true) == "▁▁");
    CHECK(sparkline({}, true).empty());
    CHECK(sparkline(std::vector{1.0, 2.0, 4.0}, false) == "_-#");  // a factor of 20 or less: linear
}

TEST_CASE("sparkline: a cross for values that are not finite, huge values, and every n-th value") {
    CHECK(sparkline(std::vector{2.0, failed, 1.0}, true) == "█×▁");
    CHECK(sparkline(std::vector{2.0, failed, 1.0}, false) == "#x_");
    CHECK(sparkline(std::vector{-1e308, 1e308}, false) == "_#");
    CHECK(sparkline(std::vector{0.0, 1.0, 2.0, 3.0, 7.0}, false, 3) == "_-#");
}

TEST_CASE("best_so_far: follows the order of ends, begins with the first result, and keeps the best over failures") {
    CHECK(best_so_far(ended_in_turn({failed, 3, 4, failed, 1}), 10) == std::vector<double>{3, 3, 3, 1});
    CHECK(best_so_far(ended_in_turn({failed}), 10).empty());
}

TEST_CASE("best_so_far: at most the given number of values, the last of them the present best") {
    std::vector<double> losses(101);
    for (std::size_t i = 0; i < losses.size(); ++i) {
        losses[i] = 1000 - static_cast<double>(i);
    }
    CHECK(best_so_far(ended_in_turn(losses), 4) == std::vector<double>{976, 951, 926, 900});
}
