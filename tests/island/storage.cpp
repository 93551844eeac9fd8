// Failures of the journal or of the archive, and the reaction of the leaders.
#include "finch/island/worker.hpp"

#include "island/world.hpp"

#include <doctest/doctest.h>

namespace finch::island {

TEST_CASE("a failed journal write causes an orderly stop, and unrecorded results are never sent to other leaders") {
    World world(3, 1, evaluations(500), search::ExchangeKind::none);
    CHECK_FALSE(world.run(1));
    world.files_[1]->full = true;
    CHECK(world.go_on(plenty));

    CHECK(world.workers_[1]->exit_reason() == ExitReason::storage);
    CHECK(world.workers_[0]->exit_reason() == ExitReason::stopped);
    CHECK(world.workers_[0]->population() == world.recorded());
}

TEST_CASE("an evaluation that cannot start because the disk is full causes an orderly stop") {
    World world(3, 1, evaluations(500), search::ExchangeKind::none);
    CHECK_FALSE(world.run(1));
    world.evaluators_[1]->is_disk_full = true;
    CHECK(world.go_on(plenty));

    CHECK(world.workers_[1]->exit_reason() == ExitReason::storage);
    CHECK(world.workers_[0]->exit_reason() == ExitReason::stopped);
    CHECK(world.run(plenty));
    CHECK(world.recorded().finished() == 500);
}

TEST_CASE("a failed journal sync causes an orderly stop, and the next start completes the run") {
    for (const std::size_t victim : {0U, 1U}) {
        CAPTURE(victim);
        World world(3, 1, evaluations(500), search::ExchangeKind::none);
        CHECK_FALSE(world.run(100));
        world.files_[victim]->unsynced = true;

        CHECK(world.go_on(plenty));
        for (std::size_t worker = 0; worker < 3; ++worker) {
            CHECK(world.workers_[worker]->exit_reason() ==
                  (worker == victim ? ExitReason::storage : ExitReason::stopped));
        }
        CHECK(world.recorded().finished() > 0);
        CHECK(world.recorded().finished() < 500);
        CHECK(world.run(plenty));

        CHECK(world.recorded().finished() == 500);
        CHECK(world.recorded().unfinished().empty());
    }
}

TEST_CASE("a failed journal sync after all trainings is only a warning, because the archive has the results") {
    World world(2, 1, evaluations(20), search::ExchangeKind::none);
    world.looks = {3, 2000};
    CHECK_FALSE(world.run(1000));
    REQUIRE(world.evaluators_[0]->idle());
    world.files_[0]->unsynced = true;

    CHECK(world.go_on(plenty));

    CHECK(world.workers_[0]->exit_reason() == ExitReason::complete);
    CHECK(world.recorded().finished() == 20);
    CHECK(world.observer_.warnings.front().find("fdatasync") != std::string::npos);
}

TEST_CASE("a failed archive write is repeated, and then the run stops") {
    World world(2, 1, evaluations(1000000), search::ExchangeKind::none);
    CHECK_FALSE(world.run(1));
    world.archive_->full = true;

    CHECK(world.go_on(plenty, 0.01));

    CHECK(world.workers_[0]->exit_reason() == ExitReason::stopped);
    CHECK(world.workers_[1]->exit_reason() == ExitReason::stopped);
}

}  // namespace finch::island
