// Why leaders end: budgets, a stop, a failure, one that is silent.
#include "finch/base/clock.hpp"
#include "finch/island/worker.hpp"

#include "island/world.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <string>

namespace finch::island {

TEST_CASE("a target loss ends the run: nothing starts, what runs is saved, and goes on where the target is lowered") {
    Budget budget;
    budget.target_loss = 0.5;
    World world(4, 2, budget, search::ExchangeKind::pollination);
    world.looks = {3, 40, 40, 40};

    CHECK(world.run(plenty));

    const search::Population recorded = world.recorded();
    CHECK(recorded.best()->loss <= 0.5);
    CHECK(recorded.unfinished().size() > 0);
    for (const search::Individual* individual : recorded.unfinished()) {
        CHECK(individual->progress > 0);
    }
    CHECK(world.workers_[0]->exit_reason() == ExitReason::complete);
    CHECK(world.messages_to_others(search::Record(search::Halt{}).index()) <= 2 * 3);

    world.budget_.target_loss = 1e-3;
    CHECK(world.run(plenty));
    for (const search::Individual* individual : recorded.unfinished()) {
        CHECK(world.recorded().find(individual->id)->finished_training());
    }
}

TEST_CASE("a budget of hours ends the run, also where world rank 0 has long nothing to do; nothing is thrown away") {
    Budget budget;
    budget.hours = 0.001;  // 3.6 s of this clock
    budget.evaluations = 5;
    World world(5, 1, budget, search::ExchangeKind::none);
    world.looks = {3, 20, 1000000000, 1000000000, 1000000000};  // the last would train for ever

    CHECK(world.run(plenty));

    CHECK(world.now_ > 1 + 3.6);
    CHECK(world.now_ < 1 + 3.7);
    CHECK(world.recorded().finished() == 2);
    CHECK(world.recorded().unfinished().size() == 3);
    // Each of the three that see it tells world rank 0, which tells the four others once.
    CHECK(world.messages_to_others(search::Record(search::Halt{}).index()) <= 3 + 4);
    for (const auto& worker : world.workers_) {
        CHECK(worker->exit_reason() == ExitReason::complete);
    }
}

TEST_CASE("a budget of node hours is used faster on more nodes") {
    Budget budget;
    budget.node_hours = 0.001;
    World world(2, 1, budget, search::ExchangeKind::none);
    world.nodes = 4;

    CHECK(world.run(plenty));

    CHECK(world.now_ > 1 + 3.6 / 4);
    CHECK(world.now_ < 1 + 3.7 / 4);
}

TEST_CASE("budgets of hours and of node hours are of all starts: what earlier ones used is not there again") {
    Budget hours;
    hours.hours = 3.6 / 3600;
    World one(2, 1, hours, search::ExchangeKind::none);
    one.hours_before = 3.0 / 3600;
    Budget node_hours;
    node_hours.node_hours = 3.6 / 3600;
    World other(2, 1, node_hours, search::ExchangeKind::none);
    other.node_hours_before = 3.0 / 3600;
    other.nodes = 4;

    CHECK_FALSE(one.run(1));
    CHECK(one.workers_[1]->next_due() == doctest::Approx(one.now_ + 0.6).epsilon(0.001));
    CHECK(one.go_on(plenty));
    CHECK(one.now_ == doctest::Approx(1 + 0.6).epsilon(0.02));
    CHECK_FALSE(other.run(1));
    CHECK(other.workers_[1]->next_due() == doctest::Approx(other.now_ + 0.6 / 4).epsilon(0.001));
    CHECK(other.go_on(plenty));
    CHECK(other.now_ == doctest::Approx(1 + 0.6 / 4).epsilon(0.02));

    one.hours_before = 3.6 / 3600;
    CHECK(one.run(plenty));
    CHECK(one.bred_in_last_start() == 0);
}

TEST_CASE("generations over changing layouts: each start uses the share that is left") {
    Budget budget;
    budget.generations = 10;
    World world(4, 1, budget, search::ExchangeKind::none);
    world.run(70, 4);
    world.stop = StopRequest::orderly;
    CHECK(world.go_on(plenty));
    world.stop = StopRequest::none;
    const auto first = static_cast<double>(world.recorded().finished());
    CHECK(first > 4);
    CHECK(first < 40);

    CHECK(world.run(plenty, 2));

    CHECK(world.recorded().unfinished().empty());
    CHECK(world.recorded().finished() == static_cast<std::size_t>(first + std::round(20 * (1 - first / 40))));
}

TEST_CASE("the stop begins when a snapshot, the archive and 5 s are left") {
    World world(2, 1, evaluations(1000000), search::ExchangeKind::none);
    world.end_time = 101;
    world.checkpoint_seconds = 8;
    CHECK_FALSE(world.run(1));
    CHECK_FALSE(world.go_on(100, 0.85));  // to 13.2 s before the end
    CHECK(world.workers_[0]->exit_reason() == ExitReason::complete);

    CHECK(world.go_on(plenty, 0.01));

    CHECK(world.workers_[0]->exit_reason() == ExitReason::stopped);
    CHECK(world.now_ < 101 - 12);
    const std::string& why = world.archive_->events.back().text;
    CHECK(why.find(date_and_time(101)) != std::string::npos);
    CHECK(why.find("FINCH_DEADLINE") != std::string::npos);
}

TEST_CASE("the stop begins early enough for an archive as slow as the last one, on every leader by itself") {
    for (const bool is_alone : {false, true}) {
        CAPTURE(is_alone);
        World world(2, 1, evaluations(1000000), search::ExchangeKind::none);
        world.looks = {1000000, 1000000};
        world.end_time = 101;
        world.checkpoint_seconds = 8;
        CHECK_FALSE(world.run(1));
        world.archive_->on_write = [&world] { world.now_ += 4; };
        CHECK_FALSE(world.go_on(30, 0.6));
        REQUIRE(world.archive_->written > 0);
        world.stopped = is_alone ? world.workers_[0].get() : nullptr;  // so that it tells nobody

        while (world.workers_[1]->exit_reason() == ExitReason::complete && world.now_ < world.end_time) {
            static_cast<void>(world.go_on(1, 0.01));
        }

        CHECK(world.workers_[1]->exit_reason() == ExitReason::stopped);
        CHECK(world.now_ == doctest::Approx(101 - 8 - 4 - 5).epsilon(0.001));
    }
}

TEST_CASE("a budget of generations gives every worker as many evaluations") {
    Budget budget;
    budget.generations = 9;
    World world(3, 3, budget, search::ExchangeKind::migration);

    CHECK(world.run(plenty));

    std::map<std::uint32_t, int> bred;
    const search::Population recorded = world.recorded();
    for (const auto& [id, individual] : recorded.individuals()) {
        ++bred[id.worker()];
    }
    CHECK(bred == std::map<std::uint32_t, int>{{0, 9}, {1, 9}, {2, 9}});
}

TEST_CASE("a leader that stops is named with its place by those that watch it; nobody is named where all live") {
    for (const std::size_t victim : {0U, 2U}) {
        CAPTURE(victim);
        World world(3, 1, evaluations(1'000'000), search::ExchangeKind::none);
        world.timeout_seconds = 5;
        CHECK_FALSE(world.run(10));
        CHECK_FALSE(world.go_on(200, 0.5));
        world.stopped = world.workers_[victim].get();
        std::string said;
        double seconds = world.now_;

        try {
            world.go_on(1000, 0.1);
        } catch (const Error& error) {
            said = error.what();
        }

        seconds = world.now_ - seconds;
        CHECK(said.find(victim == 0 ? "worker 0 (rank 0 on n1)" : "worker 2 (rank 2 on n2)") != std::string::npos);
        CHECK((seconds > 20 && seconds < 40));
    }
}

TEST_CASE("a leader that stops within its snapshots is named after what they may take, not after ten minutes") {
    World world(3, 1, evaluations(1'000'000), search::ExchangeKind::none);
    world.timeout_seconds = 5;
    world.checkpoint_seconds = 8;
    struct StoppedWithin {};
    CHECK_FALSE(world.run(10));
    world.evaluators_[1]->on_checkpoint = [] { throw StoppedWithin(); };
    CHECK_THROWS_AS(world.go_on(plenty, 0.1), StoppedWithin);
    world.stopped = world.workers_[1].get();
    double seconds = world.now_;
    std::string said;

    try {
        world.go_on(10000, 0.1);
    } catch (const Error& error) {
        said = error.what();
    }

    seconds = world.now_ - seconds;
    CHECK(said.find("worker 1 (rank 1 on n1)") != std::string::npos);
    CHECK(seconds > 160);
    CHECK(seconds < 190);
}

TEST_CASE("leaders that only wait for the last training give signs of life") {
    World world(3, 1, evaluations(3), search::ExchangeKind::none);
    world.timeout_seconds = 5;
    CHECK_FALSE(world.run(8));

    CHECK(world.go_on(100000, 0.9));

    CHECK(world.recorded().finished() == 3);
}

TEST_CASE("an orderly stop saves what runs, all leave, and the next start goes on with it") {
    std::size_t unfinished = 0;
    for (const int rounds : {11, 20, 29, 40, 53}) {
        World world(4, 2, evaluations(100), search::ExchangeKind::pollination);
        CHECK_FALSE(world.run(rounds));
        world.stop = StopRequest::orderly;
        CHECK(world.go_on(plenty));
        for (int i = 0; i < 4; ++i) {
            CHECK(world.workers_[static_cast<std::size_t>(i)]->exit_reason() == ExitReason::stopped);
            CHECK(world.evaluators_[static_cast<std::size_t>(i)]->checkpoints >= 1);
        }
        unfinished += world.recorded().unfinished().size();
        world.stop = StopRequest::none;

        CHECK(world.run(plenty));

        CHECK(world.recorded().finished() == 100);
        CHECK(world.recorded().unfinished().empty());
    }
    CHECK(unfinished > 0);
}

TEST_CASE("after TERM a leader leaves at once and waits for nobody") {
    World world(2, 1, evaluations(100), search::ExchangeKind::none);
    CHECK_FALSE(world.run(20));
    world.stop = StopRequest::urgent;

    CHECK(world.go_on(1));

    CHECK(world.workers_[0]->exit_reason() == ExitReason::urgent);
    CHECK(world.evaluators_[0]->checkpoints == 1);
}

}  // namespace finch::island
