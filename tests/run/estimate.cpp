// Tests the estimates with searches whose ends are known.
#include "finch/run/estimate.hpp"

#include "run/budgets.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::run;

namespace {

constexpr double start_of_search = 1e9;  ///< Unix seconds

SearchBegin begin(const island::Budget& budget, int workers) {
    return {.budget = budget, .workforce = {.workers = workers}, .restart = 2, .unix_seconds = start_of_search};
}

/// The evaluations of a start, each with four epochs.
class Search {
public:
    explicit Search(const SearchBegin& search_begin) : begin_(search_begin) {}

    /// Adds an evaluation that runs from `began` to `ended` (or still runs), in seconds since the start.
    void add(double began, std::optional<double> ended, search::Outcome outcome = search::Outcome::evaluated,
             std::uint32_t restart = 2) {
        search::Individual one;
        one.id = search::Id::make(restart, 0, ++count_);
        one.born = one.started = start_of_search + began;
        one.attempt = {.restart = 2, .worker = 0};
        if (ended) {
            one.outcome = outcome;
            one.loss = outcome == search::Outcome::evaluated ? 1 : search::Individual::not_measured;
            one.epochs = 4;
            one.finished = start_of_search + *ended;
        }
        population.merge(one);
    }
    /// Adds `rounds` rounds of an evaluation of 10 s on each worker.
    void add_rounds(int rounds) {
        for (int round = 0; round < rounds; ++round) {
            for (int worker = 0; worker < begin_.workforce.workers; ++worker) {
                add(10.0 * round, 10.0 * round + 10);
            }
        }
    }
    [[nodiscard]] std::optional<Estimate> left(double now) const {
        return estimate_time_left(begin_, population, start_of_search + now);
    }

    search::Population population{search::ExchangeKind::none, 1};

private:
    SearchBegin begin_;
    std::uint32_t count_ = 0;
};

double seconds_of(const island::Budget& budget, const Workforce& workforce) {
    return estimate_search(budget, workforce, {.seconds = 3600, .epochs = 5})->seconds.expected;
}

double evaluations_of(const island::Budget& budget, const Workforce& workforce) {
    return estimate_search(budget, workforce, {.seconds = 3600, .epochs = 5})->evaluations.expected;
}

}  // namespace

TEST_CASE("estimate_time_left: the mean pace times what is left, a quarter either way") {
    Search search(begin(evaluations(40), 4));
    search.add_rounds(4);
    CHECK(search.left(40)->low == doctest::Approx(45));
    CHECK(search.left(40)->expected == doctest::Approx(60));
    CHECK(search.left(40)->high == doctest::Approx(75));
}

TEST_CASE("estimate_time_left: running evaluations count by the share of the mean that they have run") {
    Search search(begin(evaluations(40), 4));
    search.add_rounds(4);
    for (int worker = 0; worker < 4; ++worker) {
        search.add(40, std::nullopt);
    }
    CHECK(search.left(45)->expected == doctest::Approx(55));
    CHECK(search.left(50)->expected == doctest::Approx(50));
}

TEST_CASE("estimate_time_left: the last evaluation lasts as long as the mean, and then the end is not known") {
    Search search(begin(evaluations(9), 4));
    search.add_rounds(2);
    search.add(20, std::nullopt);
    CHECK(search.left(23)->expected == doctest::Approx(7));
    CHECK_FALSE(search.left(30));
    CHECK_FALSE(search.left(300));
}

TEST_CASE("estimate_time_left: nothing before two results of each slot; failures alone are no results") {
    Search three(begin(evaluations(40), 3));
    CHECK_FALSE(three.left(0));
    three.add_rounds(1);
    CHECK_FALSE(three.left(10));
    three.add_rounds(1);
    CHECK(three.left(20));
    Search ten_slots(begin(evaluations(10), 10));
    for (int number = 0; number < 4; ++number) {
        ten_slots.add(0, 10);
    }
    CHECK_FALSE(ten_slots.left(10));
    ten_slots.add(0, 10);
    CHECK(ten_slots.left(10));

    Search failures(begin(evaluations(40), 2));
    for (int number = 0; number < 9; ++number) {
        failures.add(0, 1, search::Outcome::failed);
    }
    CHECK_FALSE(failures.left(5));
}

TEST_CASE("estimate_time_left: hours and node-hours are deadlines, known from the beginning") {
    SearchBegin of_hours = begin(hours(2), 2);
    of_hours.hours = 0.5;
    CHECK(Search(of_hours).left(900)->low == doctest::Approx(1.25 * 3600));
    CHECK(Search(of_hours).left(900)->high == doctest::Approx(1.25 * 3600));
    SearchBegin node_hours = begin(budget(&island::Budget::node_hours, 8.0), 2);
    node_hours.workforce.nodes = 4;
    node_hours.node_hours = 4;
    CHECK(Search(node_hours).left(900)->low == doctest::Approx(0.75 * 3600));
    CHECK_FALSE(Search(begin(budget(&island::Budget::target_loss, 0.1), 2)).left(0));

    island::Budget both = evaluations(740);
    both.hours = 1;
    Search search(begin(both, 2));
    search.add_rounds(5);
    CHECK(search.left(50)->low == doctest::Approx(0.75 * 3650));
    CHECK(search.left(50)->high == doctest::Approx(3600 - 50));
}

TEST_CASE("estimate_time_left: budgets of epochs and generations") {
    Search of_epochs(begin(epochs(100), 2));
    of_epochs.add_rounds(3);  // 24 epochs; the other 76 are 19 evaluations
    CHECK(of_epochs.left(30)->expected == doctest::Approx(95));
    Search of_generations(begin(generations(20), 2));
    of_generations.add_rounds(5);
    CHECK(of_generations.left(50)->expected == doctest::Approx(150));
    CHECK_FALSE(Search(begin(epochs(100), 2)).left(30));
}

TEST_CASE("estimate_time_left: the time between evaluations counts") {
    Search search(begin(evaluations(100), 1));
    for (int number = 1; number <= 10; ++number) {  // 1 s each, every 4 s
        search.add(4 * number - 1, 4 * number);
    }
    CHECK(search.left(40)->expected == doctest::Approx(360));
}

TEST_CASE("estimate_time_left, used_share: resumed evaluations count, but do not replace two results of each slot") {
    const SearchBegin search_begin = begin(evaluations(20), 1);
    Search search(search_begin);
    search.add(-5000, 2, search::Outcome::evaluated, 1);
    for (int number = 1; number <= 3; ++number) {
        search.add(2 * number, 2 * number + 2);
    }
    CHECK_FALSE(search.left(8));
    search.add(8, 10);
    CHECK(search.left(10)->expected == doctest::Approx(30));
    CHECK(*used_share(search_begin, search.population, start_of_search + 10) == doctest::Approx(0.25));
}

TEST_CASE("estimate_search: the budget times the mean of an evaluation, divided by the workers") {
    CHECK(seconds_of(evaluations(40), {.workers = 4}) == doctest::Approx(10 * 3600));
    CHECK(seconds_of(evaluations(3), {.workers = 4}) == doctest::Approx(3600));
    CHECK(seconds_of(generations(7), {.workers = 4}) == doctest::Approx(7 * 3600));
    CHECK(evaluations_of(generations(7), {.workers = 4}) == 28);
    CHECK(seconds_of(epochs(100), {.workers = 4}) == doctest::Approx(5 * 3600));
    CHECK(evaluations_of(epochs(100), {.workers = 4}) == 20);
    CHECK(seconds_of(evaluations(40), {.workers = 2, .slots = 2}) == doctest::Approx(20 * 3600));
}

TEST_CASE("estimate_search: hours and node-hours are exact, and their evaluations are estimated") {
    const auto of_hours = estimate_search(hours(2.5), {.workers = 4}, {.seconds = 3600, .epochs = 5});
    CHECK(of_hours->seconds.low == doctest::Approx(2.5 * 3600));
    CHECK(of_hours->seconds.high == doctest::Approx(2.5 * 3600));
    CHECK(of_hours->evaluations.low == doctest::Approx(7.5));
    CHECK(of_hours->evaluations.expected == doctest::Approx(10));
    CHECK(of_hours->evaluations.high == doctest::Approx(12.5));
    const island::Budget node_hours = budget(&island::Budget::node_hours, 5.0);
    CHECK(seconds_of(node_hours, {.workers = 4, .nodes = 2}) == doctest::Approx(2.5 * 3600));
    CHECK_FALSE(estimate_search(budget(&island::Budget::target_loss, 0.1), {}, {.seconds = 1, .epochs = 1}));
}
