// The periodic tasks of a worker and their times: reports and snapshots.
#include "finch/island/worker.hpp"

#include "island/world.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <vector>

namespace finch::island {

TEST_CASE("next_due: returns the time of the worker's next report, or of the end of its budget of hours") {
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

TEST_CASE("reports: world rank 0 receives at most a hundred reports per second, even from many workers") {
    World world(2000, 1, evaluations(1000000), search::ExchangeKind::none);
    world.looks = std::vector<int>(2000, 1000000);
    world.training_seconds = 1e6;
    CHECK_FALSE(world.run(1));

    CHECK(world.workers_[1]->next_due() == doctest::Approx(world.now_ + 2000 / 100).epsilon(0.001));
}

TEST_CASE("reports are stored in the archive, and not in a journal") {
    World world(3, 1, evaluations(1000000), search::ExchangeKind::none);
    CHECK_FALSE(world.run(10));

    CHECK_FALSE(world.go_on(100, 0.5));

    std::map<std::int32_t, int> told;
    for (const search::WorkerReport& report : world.archive_->reports) {
        ++told[report.worker];
    }
    for (const std::int32_t worker : {0, 1, 2}) {
        CHECK(told[worker] >= 4);  // one at the start and one every 10 s
        CHECK(told[worker] <= 6);
    }
    CHECK(world.journaled(search::Record(search::WorkerReport{}).index()) == 0);
    CHECK(world.journaled(search::Record(search::Started{}).index()) > 0);
}

TEST_CASE("snapshots: the workers spread them over the first period and over each later period") {
    World world(8, 1, evaluations(1000000), search::ExchangeKind::none);
    world.looks = std::vector<int>(8, 1000000);
    world.training_seconds = 60;
    CHECK_FALSE(world.run(1));
    const double began = world.now_;
    std::vector<double> saved;
    for (const auto& evaluator : world.evaluators_) {
        evaluator->on_checkpoint = [&] { saved.push_back(world.now_ - began); };
    }

    CHECK_FALSE(world.go_on(1210, 0.1));  // two periods, plus the time for the last snapshot

    REQUIRE(saved.size() == 2 * 8);
    CHECK(saved[7] < 61);
    // The snapshot times in a period are multiples of the golden ratio. Eight of these times differ by at least 0.09 of
    // a period (three gap theorem).
    for (std::size_t i = 1; i < saved.size(); ++i) {
        CHECK(saved[i] - saved[i - 1] > 0.08 * 60);
    }
}

}  // namespace finch::island
