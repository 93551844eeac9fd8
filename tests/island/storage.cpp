// What leaders do where the journal or the archive cannot be kept.
#include "finch/island/worker.hpp"

#include "island/world.hpp"

#include <doctest/doctest.h>

namespace finch::island {

TEST_CASE("a journal that cannot be written stops the run in order, and nobody hears of what is not recorded") {
    World world(3, 1, evaluations(500), search::ExchangeKind::none);
    CHECK_FALSE(world.run(1));
    world.files_[1]->full = true;
    CHECK(world.go_on(plenty));

    CHECK(world.workers_[1]->exit_reason() == ExitReason::storage);
    CHECK(world.workers_[0]->exit_reason() == ExitReason::stopped);
    CHECK(world.workers_[0]->population() == world.recorded());
}

TEST_CASE("a journal that cannot be synced stops the run in order, and the next start completes it") {
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

TEST_CASE("a sync that fails once all is trained is a warning: what is there was told, and the archive holds it") {
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

TEST_CASE("an archive that cannot be written is tried again, then the run stops") {
    World world(2, 1, evaluations(1000000), search::ExchangeKind::none);
    CHECK_FALSE(world.run(1));
    world.archive_->full = true;

    CHECK(world.go_on(plenty, 0.01));

    CHECK(world.workers_[0]->exit_reason() == ExitReason::stopped);
    CHECK(world.workers_[1]->exit_reason() == ExitReason::stopped);
}

}  // namespace finch::island
