// A search in which every evaluation fails stops before it has used its whole budget.
#include "island/world.hpp"

#include <doctest/doctest.h>

namespace finch::island {

namespace {

using search::Individual;
using search::Outcome;

bool always(const Individual&) {
    return true;
}

World failing_world(int workers, int islands) {
    World world(workers, islands, evaluations(1000), search::ExchangeKind::pollination);
    world.give_up_after = 8;
    world.fails = always;
    return world;
}

void check_all_stopped(const World& world) {
    CHECK(world.workers_[0]->exit_reason() == ExitReason::gave_up);
    for (std::size_t worker = 1; worker < world.workers_.size(); ++worker) {
        CHECK(world.workers_[worker]->exit_reason() == ExitReason::stopped);
    }
}

}  // namespace

TEST_CASE("giving up: all leaders stop if the first evaluations fail, with any number of workers, islands and slots") {
    for (const auto& [workers, islands, slots] : {std::array{1, 1, 1}, {2, 1, 3}, {4, 2, 1}, {9, 3, 2}}) {
        CAPTURE(workers);
        World world = failing_world(workers, islands);
        world.slots = slots;

        REQUIRE(world.run(plenty));

        check_all_stopped(world);
        CHECK(world.recorded().finished() >= 8);
        CHECK(world.recorded().finished() <= static_cast<std::size_t>(8 + 3 * workers * slots));
        REQUIRE(world.archive_->events.size() == 1);
        CHECK(world.archive_->events[0].kind == "stop");
        CHECK(world.archive_->events[0].text.starts_with("given up: "));
    }
}

TEST_CASE("giving up: immediate failures use no more of the budget than slow failures") {
    World world = failing_world(4, 1);
    world.fails = [](const Individual&) { return false; };
    world.exists = [](const search::Genome&) { return false; };

    REQUIRE(world.run(plenty));

    check_all_stopped(world);
    CHECK(world.recorded().finished() <= 8 + 3 * 4);
}

TEST_CASE("giving up: one result of any start is enough for the search to use its whole budget") {
    World world = failing_world(3, 1);
    world.budget_ = evaluations(60);
    world.fails = [](const Individual& one) { return one.id.sequence() != 2; };
    REQUIRE(world.run(plenty));
    CHECK(world.recorded().evaluations() == 60);
    CHECK(world.workers_[0]->exit_reason() == ExitReason::complete);

    world.budget_ = evaluations(100);
    world.fails = always;
    REQUIRE(world.run(plenty));
    CHECK(world.recorded().evaluations() == 100);
    CHECK(world.workers_[0]->exit_reason() == ExitReason::complete);
}

TEST_CASE("giving up: a later start makes the same number of attempts again, and continues if the cause is fixed") {
    World world = failing_world(2, 1);
    world.retries = 1;
    REQUIRE(world.run(plenty));
    const std::size_t first = world.recorded().finished();
    REQUIRE(world.run(plenty, 3));
    check_all_stopped(world);
    const std::size_t second = world.recorded().finished();
    CHECK(second >= first + 8);
    CHECK(second <= first + 8 + 3 * 3);

    world.fails = [](const Individual&) { return false; };
    REQUIRE(world.run(plenty));

    CHECK(world.workers_[0]->exit_reason() == ExitReason::complete);
    CHECK(world.recorded().evaluations() == 1000);
    CHECK(world.recorded().unfinished().empty());
}

TEST_CASE("giving up: kills at any moment do not change the result") {
    for (int rounds = 5; rounds < 120; rounds += 7) {
        World world = failing_world(4, 2);
        world.run(rounds);

        REQUIRE(world.run(plenty, 3));

        check_all_stopped(world);
        CHECK(world.recorded().finished() < 40 + 8);
    }
}

TEST_CASE("giving up: a run that used its whole budget is complete; without `give_up_after`, no run gives up") {
    for (const bool counts_generations : {false, true}) {
        World world = failing_world(2, 1);
        world.budget_ = evaluations(8);
        if (counts_generations) {
            world.budget_ = {};
            world.budget_.generations = 4;
        }
        REQUIRE(world.run(plenty));
        CHECK(world.workers_[0]->exit_reason() == ExitReason::complete);
        CHECK(world.recorded().finished() == 8);
    }

    World world = failing_world(2, 1);
    world.give_up_after.reset();
    world.budget_ = evaluations(100);
    REQUIRE(world.run(plenty));
    CHECK(world.workers_[0]->exit_reason() == ExitReason::complete);
    CHECK(world.recorded().finished() == 100);
}

}  // namespace finch::island
