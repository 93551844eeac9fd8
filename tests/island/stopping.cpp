// The reasons for a leader to end: budgets, a stop request, a failure, a silent leader.
#include "finch/base/clock.hpp"
#include "finch/island/worker.hpp"

#include "island/world.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <string>

namespace finch::island {

TEST_CASE("target loss: the run ends, saves the running trainings, and continues if the target is lowered") {
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

TEST_CASE("budget of hours: the run ends even if world rank 0 is idle, and the running trainings are saved") {
    Budget budget;
    budget.hours = 0.001;  // 3.6 s of the simulated clock
    budget.evaluations = 5;
    World world(5, 1, budget, search::ExchangeKind::none);
    world.looks = {3, 20, 1000000000, 1000000000, 1000000000};  // the last three trainings would never end

    CHECK(world.run(plenty));

    CHECK(world.now_ > 1 + 3.6);
    CHECK(world.now_ < 1 + 3.7);
    CHECK(world.recorded().finished() == 2);
    CHECK(world.recorded().unfinished().size() == 3);
    // Each of the three workers that still train notifies world rank 0. World rank 0 notifies the four others once.
    CHECK(world.messages_to_others(search::Record(search::Halt{}).index()) <= 3 + 4);
    for (const auto& worker : world.workers_) {
        CHECK(worker->exit_reason() == ExitReason::complete);
    }
}

TEST_CASE("budget of node hours: a run on more nodes uses it faster") {
    Budget budget;
    budget.node_hours = 0.001;
    World world(2, 1, budget, search::ExchangeKind::none);
    world.nodes = 4;

    CHECK(world.run(plenty));

    CHECK(world.now_ > 1 + 3.6 / 4);
    CHECK(world.now_ < 1 + 3.7 / 4);
}

TEST_CASE("budgets of hours and node hours include the time that earlier starts used") {
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

TEST_CASE("budget of generations: a start with fewer workers uses the unused fraction of the budget") {
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

TEST_CASE("deadline: the stop begins just early enough for a snapshot, for the archive and for 5 s of reserve") {
    World world(2, 1, evaluations(1000000), search::ExchangeKind::none);
    world.end_time = 101;
    world.checkpoint_seconds = 8;
    CHECK_FALSE(world.run(1));
    CHECK_FALSE(world.go_on(100, 0.85));  // until 13.2 s before the end
    CHECK(world.workers_[0]->exit_reason() == ExitReason::complete);
    world.new_end_time = 121;            // the time limit is extended
    CHECK_FALSE(world.go_on(23, 0.85));  // until 13.6 s before the new end
    CHECK(world.workers_[0]->exit_reason() == ExitReason::complete);

    CHECK(world.go_on(plenty, 0.01));

    CHECK(world.workers_[0]->exit_reason() == ExitReason::stopped);
    CHECK(world.now_ < 121 - 12);
    const std::string& why = world.archive_->events.back().text;
    CHECK(why.find(date_and_time(121)) != std::string::npos);
    CHECK(why.find("FINCH_DEADLINE") != std::string::npos);
}

TEST_CASE("deadline: every leader adds the duration of the last archive to the time for the stop") {
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
        world.stopped = is_alone ? world.workers_[0].get() : nullptr;  // it cannot notify the other leader

        while (world.workers_[1]->exit_reason() == ExitReason::complete && world.now_ < world.end_time) {
            static_cast<void>(world.go_on(1, 0.01));
        }

        CHECK(world.workers_[1]->exit_reason() == ExitReason::stopped);
        CHECK(world.now_ == doctest::Approx(101 - 8 - 4 - 5).epsilon(0.001));
    }
}

TEST_CASE("budget of generations: every worker evaluates the same number of individuals") {
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

TEST_CASE("liveness: the watching leaders name a suspended leader with its rank and node, and no running leader") {
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

TEST_CASE("liveness: a leader that hangs during its snapshots is named after the time allowed for snapshots") {
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

TEST_CASE("liveness: leaders that wait for the last training still send signs of life") {
    World world(3, 1, evaluations(3), search::ExchangeKind::none);
    world.timeout_seconds = 5;
    CHECK_FALSE(world.run(8));

    CHECK(world.go_on(100000, 0.9));

    CHECK(world.recorded().finished() == 3);
}

TEST_CASE("orderly stop: running trainings are saved, all leaders leave, and the next start continues the trainings") {
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

TEST_CASE("urgent stop: after SIGTERM a leader leaves without waiting for others") {
    World world(2, 1, evaluations(100), search::ExchangeKind::none);
    CHECK_FALSE(world.run(20));
    world.stop = StopRequest::urgent;

    CHECK(world.go_on(1));

    CHECK(world.workers_[0]->exit_reason() == ExitReason::urgent);
    CHECK(world.evaluators_[0]->checkpoints == 1);
}

}  // namespace finch::island
