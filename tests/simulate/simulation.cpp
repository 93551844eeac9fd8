#include "simulate/simulation.hpp"

#include "finch/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

using namespace finch;
using namespace finch::simulate;

namespace {

config::Config rastrigin(const std::string& search, const std::string& workers = "{islands: 1}") {
    const bool says_how = search.find("propagator:") != std::string::npos;
    return config::parse("search: {objective: {function: rastrigin, dimensions: 4}, " +
                             std::string(says_how ? "" : "propagator: genetic, ") + search + "}\nworkers: " + workers,
                         "test.yaml");
}

void check_same(const Result& a, const Result& b) {
    CHECK(a.evaluations == b.evaluations);
    CHECK(a.best == b.best);
    CHECK(a.hours == b.hours);
    CHECK(a.busy_fraction == b.busy_fraction);
    CHECK(a.messages == b.messages);
    CHECK(a.leader_bytes == b.leader_bytes);
    CHECK(a.archivist_bytes == b.archivist_bytes);
}

const Options lognormal_20{20, {60, 0.5}, 0.001};

}  // namespace

TEST_CASE("run: the same seed gives the same result bit by bit, another seed gives another result") {
    for (const char* exchange :
         {"{kind: none}", "{kind: migration}", "{kind: pollination}", "{kind: pollination}, propagator: evolution"}) {
        CAPTURE(exchange);
        const config::Config config =
            rastrigin(std::string("exchange: ") + exchange + ", budget: {evaluations: 500}", "{islands: 4, slots: 2}");

        const Result first = run(config, lognormal_20, 7);

        check_same(first, run(config, lognormal_20, 7));
        CHECK(first.seed == 7);
        CHECK(run(config, lognormal_20, 8).best != first.best);
    }
}

TEST_CASE("run: uses the initial guesses, the start design and the constraints of the configuration") {
    const auto best = [](const std::string& search) {
        return run(rastrigin(search + ", budget: {evaluations: 60}"), lognormal_20, 1).best;
    };
    CHECK(best("first: [{x0: 0, x1: 0, x2: 0, x3: 0}]") == 0);
    CHECK(best("constraints: ['x1 >= 2']") >= 4);
    CHECK(best("start: sobol") != best("start: random"));
    CHECK_THROWS_AS(static_cast<void>(run(rastrigin("first: {run: somewhere}"), lognormal_20, 1)), ConfigError);
}

TEST_CASE("run: uses a budget of evaluations exactly, and a budget of generations for every worker") {
    for (const int evaluations : {1, 19, 20, 21, 333}) {
        const config::Config config =
            rastrigin("budget: {evaluations: " + std::to_string(evaluations) + "}", "{islands: 3}");
        CHECK(run(config, lognormal_20, 1).evaluations == evaluations);
    }
    CHECK(run(rastrigin("budget: {generations: 7}"), lognormal_20, 1).evaluations == 140);
}

TEST_CASE("run: without exchange, random search finds the same best loss as a plain loop over the genomes") {
    const config::Config config =
        rastrigin("exchange: {kind: none}, propagator: random, budget: {generations: 25}", "{islands: 2}");
    const search::Function& function = search::find_function("rastrigin");
    for (const std::uint64_t seed : {1, 2, 3}) {
        double best = std::numeric_limits<double>::infinity();
        for (std::uint32_t worker = 0; worker < 20; ++worker) {
            for (std::uint32_t sequence = 1; sequence <= 25; ++sequence) {
                RandomStream random(seed, Purpose::breeding, search::Id::make(0, worker, sequence).value);
                const search::Genome genome = search::random_genome(config.space, random);
                best = std::min(best, function.value(genome));
            }
        }

        const Result result = run(config, {20, {60, 0}, 0.001}, seed);

        CHECK(result.best == best);
        CHECK(result.evaluations == 500);
        CHECK(result.hours == doctest::Approx(25 * 60 / 3600.0).epsilon(1e-3));
        CHECK(result.busy_fraction > 0.999);
    }
}

TEST_CASE("run: one worker is always busy, and its evaluations take the drawn durations") {
    const config::Config config = rastrigin("budget: {evaluations: 200}");
    double seconds = 0;
    for (std::uint32_t sequence = 1; sequence <= 200; ++sequence) {
        seconds += search::PretendedDuration{60, 0.5}.seconds(3, search::Id::make(0, 0, sequence));
    }

    const Result result = run(config, {1, {60, 0.5}, 0.001}, 3);

    CHECK(result.busy_fraction > 0.9999);
    CHECK(result.busy_fraction <= 1.0000001);
    CHECK(result.hours == doctest::Approx(seconds / 3600).epsilon(1e-6));
    CHECK(result.messages == 0);
}

TEST_CASE("run: slow messages leave workers idle between short evaluations") {
    const config::Config config = rastrigin("budget: {generations: 20}");
    const auto busy = [&](double message_seconds) {
        return run(config, {8, {1, 0}, message_seconds}, 1).busy_fraction;
    };

    // A worker requests a lease 50 ms before an evaluation ends, and receives it two messages later. Worker 0 needs no
    // messages.
    CHECK(busy(0.001) > 0.99);
    CHECK(busy(0.024) > 0.99);
    CHECK(busy(0.035) < 0.99);
    CHECK(busy(0.525) == doctest::Approx((7 * 1 / 2.0 + 1) / 8).epsilon(0.1));
}

TEST_CASE("run: a budget of hours and a target loss end a run") {
    const Result hours = run(rastrigin("budget: {hours: 2}"), {10, {60, 0.5}, 0.001}, 1);
    CHECK(hours.evaluations > 10 * 100);
    CHECK(hours.hours <= 2);
    CHECK(hours.hours > 1.9);
    const Result target = run(rastrigin("budget: {target_loss: 5, evaluations: 100000}"), {10, {60, 0.5}, 0.001}, 1);
    CHECK(target.best <= 5);
    CHECK(target.evaluations < 100000);
}

TEST_CASE("run: evaluations that would end after the budget of hours do not extend the run") {
    const config::Config config = rastrigin("budget: {hours: 0.01}", "{islands: 2}");
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        // The end of a run takes several messages. Here, each message takes as long as an evaluation.
        const Result result = run(config, {10, {0.5, 0.5}, 0.5}, seed);

        CHECK(result.hours <= 0.01);
        CHECK(result.evaluations > 0);
    }
}

TEST_CASE("run: a leader's memory is estimated from the individuals that it knows; world rank 0 knows all") {
    const Result result =
        run(rastrigin("exchange: {kind: none}, budget: {generations: 40}", "{islands: 4}"), lognormal_20, 1);

    const double individual = 40 + sizeof(search::Individual) + 4 * 8;
    CHECK(result.archivist_bytes > 800 * individual);
    CHECK(result.archivist_bytes < 800 * individual * 1.3);
    CHECK(result.leader_bytes ==
          doctest::Approx(result.archivist_bytes * (15 * 200 + 4 * 200) / 19 / 800).epsilon(0.1));
}

TEST_CASE("run: a thousand workers on islands of ten use the budget and end") {
    const Result result = run(rastrigin("exchange: {topology: ring}, budget: {evaluations: 3000}", "{islands: 100}"),
                              {1000, {60, 0.5}}, 1);

    CHECK(result.evaluations == 3000);
    CHECK(result.busy_fraction > 0.3);
}

TEST_CASE("check: throws ConfigError for a configuration that cannot be simulated") {
    const config::Config trains = config::parse("data: {kind: generated}", "test.yaml");
    CHECK_THROWS_WITH_AS(check(trains, lognormal_20), doctest::Contains("benchmark functions only"), ConfigError);
    CHECK_THROWS_WITH_AS(check(rastrigin("budget: {node_hours: 1}"), lognormal_20),
                         doctest::Contains("search.budget.node_hours"), ConfigError);
    CHECK_THROWS_WITH_AS(check(rastrigin("budget: {evaluations: 1}", "{islands: 21}"), lognormal_20),
                         "--workers: 20 are too few for 21 islands (workers.islands)", ConfigError);
    CHECK_THROWS_WITH_AS(check(rastrigin("budget: {evaluations: 1}", "{islands: [3, 4]}"), lognormal_20),
                         "--workers: 20 where workers.islands asks for 7 in all", ConfigError);
    CHECK_NOTHROW(check(rastrigin("budget: {evaluations: 1}", "{islands: [13, 7]}"), lognormal_20));
}
