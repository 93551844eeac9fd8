// What workers do now and then, and when: reports, snapshots.
#include "finch/island/worker.hpp"

#include "island/world.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <vector>

namespace finch::island {

TEST_CASE("a worker says when it has something to do next: a report, snapshots, the archive, the end of its hours") {
    Budget hours;
    hours.hours = 8 / 3600.0;
    World world(2, 1, hours, search::ExchangeKind::none);
    world.looks = {1000000, 1000000};
    CHECK_FALSE(world.run(1));
    const double began = world.now_ - World::seconds_of_round;

    CHECK(world.workers_[0]->next_due() == doctest::Approx(began + 8));
    CHECK(world.workers_[1]->next_due() == doctest::Approx(began + 8));

    World free(2, 1, evaluations(1000000), search::ExchangeKind::none);
    free.looks = {1000000, 1000000};
    CHECK_FALSE(free.run(1));
    CHECK(free.workers_[1]->next_due() == doctest::Approx(began + 10));
    free.now_ = began + 10.5;
    CHECK_FALSE(free.go_on(1));
    CHECK(free.workers_[1]->next_due() == doctest::Approx(free.now_ + 10));
}

TEST_CASE("of many workers each reports so seldom that world rank 0 receives a hundred reports a second at most") {
    World world(2000, 1, evaluations(1000000), search::ExchangeKind::none);
    world.looks = std::vector<int>(2000, 1000000);
    world.training_seconds = 1e6;
    CHECK_FALSE(world.run(1));

    CHECK(world.workers_[1]->next_due() == doctest::Approx(world.now_ + 2000 / 100).epsilon(0.001));
}

TEST_CASE("reports reach the archive and are in no journal") {
    World world(3, 1, evaluations(1000000), search::ExchangeKind::none);
    CHECK_FALSE(world.run(10));

    CHECK_FALSE(world.go_on(100, 0.5));

    std::map<std::int32_t, int> told;
    for (const search::WorkerReport& report : world.archive_->reports) {
        ++told[report.worker];
    }
    for (const std::int32_t worker : {0, 1, 2}) {
        CHECK(told[worker] >= 4);  // one at the start, one every 10 s
        CHECK(told[worker] <= 6);
    }
    CHECK(world.journaled(search::Record(search::WorkerReport{}).index()) == 0);
    CHECK(world.journaled(search::Record(search::Started{}).index()) > 0);
}

TEST_CASE("the snapshots of workers are spread over the first period and over each later one") {
    World world(8, 1, evaluations(1000000), search::ExchangeKind::none);
    world.looks = std::vector<int>(8, 1000000);
    world.training_seconds = 60;
    CHECK_FALSE(world.run(1));
    const double began = world.now_;
    std::vector<double> saved;
    for (const auto& evaluator : world.evaluators_) {
        evaluator->on_checkpoint = [&] { saved.push_back(world.now_ - began); };
    }

    CHECK_FALSE(world.go_on(1210, 0.1));  // two periods, and a bit for the last

    REQUIRE(saved.size() == 2 * 8);
    CHECK(saved[7] < 61);
    // Eight multiples of the golden ratio lie 0.09 of a turn apart or more (three gap theorem).
    for (std::size_t i = 1; i < saved.size(); ++i) {
        CHECK(saved[i] - saved[i - 1] > 0.08 * 60);
    }
}

}  // namespace finch::island
