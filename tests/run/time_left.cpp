// Tests TimeLeft with simulated searches, whose ends are known.
#include "finch/run/time_left.hpp"

#include "finch/base/random.hpp"

#include "run/budgets.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <vector>

using namespace finch;
using namespace finch::run;

namespace {

using Duration = std::function<double(RandomStream&)>;

constexpr double start_of_search = 1e9;  ///< Unix seconds

search::Individual born_at(double now, std::uint32_t number) {
    search::Individual one;
    one.id = search::Id::make(2, 0, number);
    one.born = now;
    one.attempt = {.restart = 2, .worker = 0};
    return one;
}

/// A search whose slots each start the next evaluation when they are free.
class SimulatedRun {
public:
    SimulatedRun(const SearchBegin& begin, Duration duration, std::uint64_t seed)
        : time_left(begin), begin_(begin), duration_(std::move(duration)), random_(seed, Purpose::pretended_duration) {
        for (int slot = 0; slot < begin.workforce.workers; ++slot) {
            start();
        }
    }

    /// Runs until `count` evaluations have ended.
    void run_until(std::size_t count) {
        while (population.evaluations() < count) {
            auto next = running_.begin();
            for (auto one = running_.begin(); one != running_.end(); ++one) {
                next = one->finished < next->finished ? one : next;
            }
            search::Individual done = *next;
            running_.erase(next);
            now = done.finished;
            done.outcome = search::Outcome::evaluated;
            done.loss = 1;
            done.epochs = 4;
            population.merge(done);
            time_left.finished(done);
            start();
        }
    }

    [[nodiscard]] double end() {
        SimulatedRun rest = *this;
        rest.run_until(static_cast<std::size_t>(*begin_.budget.evaluations));
        return rest.now;
    }
    [[nodiscard]] PredictionInterval left() { return *time_left.seconds(population, now); }

    TimeLeft time_left;
    search::Population population{search::ExchangeKind::none, 1};
    double now = start_of_search;

private:
    void start() {
        if (static_cast<std::int64_t>(population.size()) < begin_.budget.evaluations.value_or(1000000)) {
            search::Individual one = born_at(now, ++started_);
            population.merge(one);
            one.started = now;
            one.finished = now + duration_(random_);
            running_.push_back(one);
        }
    }

    SearchBegin begin_;
    Duration duration_;
    RandomStream random_;
    std::vector<search::Individual> running_;
    std::uint32_t started_ = 0;
};

SearchBegin begin(const island::Budget& budget, int workers) {
    return {.budget = budget, .workforce = {.workers = workers}, .restart = 2, .unix_seconds = start_of_search};
}

double always_ten(RandomStream&) {
    return 10;
}
/// Log-normal: the middle half of the durations lies within a factor of three.
double various(RandomStream& random) {
    return 10 * std::exp(0.8 * random.normal());
}
/// One in four evaluations is pruned early, or fails.
double often_short(RandomStream& random) {
    return random.uniform() < 0.25 ? 1 : random.uniform(20, 40);
}
/// One in ten evaluations takes ten times as long as the others.
double rarely_long(RandomStream& random) {
    return random.uniform() < 0.1 ? 100 : random.uniform(5, 15);
}

/// The shares of the ranges that contain the end of a search, and whose ends differ by less than a factor of four.
struct Share {
    double right = 0;
    double narrow = 0;
};
Share share_of_ranges(const Duration& duration, int workers, std::size_t done) {
    constexpr std::uint64_t searches = 200;
    Share share;
    for (std::uint64_t seed = 1000; seed < 1000 + searches; ++seed) {
        SimulatedRun run(begin(evaluations(100), workers), duration, seed);
        run.run_until(done);
        const double truth = run.end() - run.now;
        const PredictionInterval left = run.left();
        share.right += left.low <= truth && truth <= left.high ? 1.0 / searches : 0;
        share.narrow += left.high < 4 * left.low ? 1.0 / searches : 0;
    }
    return share;
}

}  // namespace

TEST_CASE("TimeLeft: equal durations give a narrow range") {
    SimulatedRun run(begin(evaluations(40), 4), always_ten, 1);
    run.run_until(16);
    CHECK(run.left().low == doctest::Approx(60));
    CHECK(run.left().median == doctest::Approx(60).epsilon(0.05));
    CHECK(run.left().high < 70);
}

TEST_CASE("TimeLeft: most ranges contain the end; the first ones are the least reliable") {
    for (const auto& duration : {various, often_short}) {
        for (const int workers : {1, 2, 8}) {
            const std::size_t first = static_cast<std::size_t>(std::max(4, 2 * workers));
            for (const std::size_t done : {first, std::size_t{16}, std::size_t{50}, std::size_t{90}}) {
                CAPTURE(workers);
                CAPTURE(done);
                const Share share = share_of_ranges(duration, workers, done);
                CHECK(share.right >= (done < 16 ? 0.6 : 0.75));
                CHECK((done < 16 || done == 90 || share.narrow >= 0.8));
            }
        }
    }
}

TEST_CASE("TimeLeft: evaluations that are rare and ten times as long are foreseen once several have ended") {
    for (const int workers : {1, 8}) {
        CAPTURE(workers);
        CHECK(share_of_ranges(rarely_long, workers, 16).right < share_of_ranges(rarely_long, workers, 50).right);
        CHECK(share_of_ranges(rarely_long, workers, 50).right >= 0.75);
    }
}

TEST_CASE("TimeLeft: nothing before two results of each slot; failures alone are no results") {
    SimulatedRun run(begin(evaluations(40), 3), always_ten, 1);
    CHECK_FALSE(run.time_left.seconds(run.population, run.now));
    run.run_until(5);
    CHECK_FALSE(run.time_left.seconds(run.population, run.now));
    run.run_until(6);
    CHECK(run.time_left.seconds(run.population, run.now));
    SimulatedRun many_slots(begin(evaluations(10), 10), always_ten, 1);
    many_slots.run_until(4);
    CHECK_FALSE(many_slots.time_left.seconds(many_slots.population, many_slots.now));
    many_slots.run_until(5);
    CHECK(many_slots.time_left.seconds(many_slots.population, many_slots.now));

    TimeLeft of_failures(begin(evaluations(40), 2));
    search::Population failed(search::ExchangeKind::none, 1);
    for (std::uint32_t number = 1; number <= 9; ++number) {
        search::Individual one = born_at(start_of_search, number);
        one.outcome = search::Outcome::failed;
        one.finished = start_of_search + 1;
        failed.merge(one);
        of_failures.finished(one);
    }
    CHECK_FALSE(of_failures.seconds(failed, start_of_search + 5));
}

TEST_CASE("TimeLeft: hours and node-hours are deadlines, known from the beginning, and shorten the range") {
    const auto left = [](const SearchBegin& begun, double passed) {
        const search::Population nothing(search::ExchangeKind::none, 1);
        return TimeLeft(begun).seconds(nothing, start_of_search + passed);
    };
    SearchBegin of_hours = begin(hours(2), 2);
    of_hours.hours = 0.5;
    CHECK(left(of_hours, 900)->low == doctest::Approx(1.25 * 3600));
    CHECK(left(of_hours, 900)->high == doctest::Approx(1.25 * 3600));
    SearchBegin node_hours = begin(budget(&island::Budget::node_hours, 8.0), 2);
    node_hours.workforce.nodes = 4;
    node_hours.node_hours = 4;
    CHECK(left(node_hours, 900)->low == doctest::Approx(0.75 * 3600));
    CHECK_FALSE(left(begin(budget(&island::Budget::target_loss, 0.1), 2), 0));

    island::Budget both = evaluations(100000);
    both.hours = 1;
    SimulatedRun run(begin(both, 2), always_ten, 1);
    run.run_until(10);
    CHECK(run.left().low == doctest::Approx(3600 - 50));
    CHECK(run.left().high == doctest::Approx(3600 - 50));
}

TEST_CASE("TimeLeft: budgets of epochs and generations") {
    SimulatedRun run(begin(epochs(100), 2), always_ten, 1);
    run.run_until(5);  // 20 epochs; the other 80 are 20 evaluations of 10 s in two slots
    CHECK(run.left().median == doctest::Approx(100).epsilon(0.11));
    SimulatedRun other(begin(generations(20), 2), always_ten, 1);
    other.run_until(10);
    CHECK(other.left().median == doctest::Approx(150).epsilon(0.01));
}

TEST_CASE("TimeLeft: time between evaluations counts") {
    TimeLeft time_left(begin(evaluations(100), 1));
    search::Population population(search::ExchangeKind::none, 1);
    for (std::uint32_t number = 1; number <= 10; ++number) {  // 1 s each, every 4 s
        search::Individual one = born_at(start_of_search + 4 * number - 1, number);
        one.outcome = search::Outcome::evaluated;
        one.loss = 1;
        one.finished = start_of_search + 4 * number;
        population.merge(one);
        time_left.finished(one);
    }
    const auto left = time_left.seconds(population, start_of_search + 40);
    CHECK(left->low == doctest::Approx(360));
    CHECK(left->median == doctest::Approx(360).epsilon(0.05));
}

TEST_CASE("TimeLeft: evaluations of earlier starts are no sample, and count for the budget") {
    TimeLeft time_left(begin(evaluations(20), 1));
    search::Population population(search::ExchangeKind::none, 1);
    const auto add = [&](std::uint32_t restart, std::uint32_t number, double born, double finished) {
        search::Individual one = born_at(start_of_search + born, number);
        one.id = search::Id::make(restart, 0, number);
        one.outcome = search::Outcome::evaluated;
        one.loss = 1;
        one.finished = start_of_search + finished;
        population.merge(one);
        time_left.finished(one);
    };
    add(1, 1, -5000, 2);  // resumed in this start
    for (std::uint32_t number = 1; number <= 4; ++number) {
        add(2, number, 2 * number, 2 * number + 2);
    }
    CHECK(time_left.seconds(population, start_of_search + 10)->median == doctest::Approx(30).epsilon(0.05));
    CHECK(*time_left.used(population, start_of_search + 10) == doctest::Approx(0.25));
}
