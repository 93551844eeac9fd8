#include "finch/run/share_run.hpp"

#include "finch/base/message.hpp"

#include <doctest/doctest.h>
#include <vector>

namespace finch::run {
namespace {

constexpr std::uint32_t individuals = 30000;  // enough for a message of more than one chunk

search::Population everything() {
    search::Population population(search::ExchangeKind::pollination, 2);
    for (std::uint32_t number = 1; number <= individuals; ++number) {
        search::Individual one;
        one.id = search::Id::make(0, number % 5, number);
        one.island = static_cast<std::int32_t>(number % 2);
        one.genome = {1.0, 2.0 * number};
        one.outcome = number % 99 == 0 ? search::Outcome::unfinished : search::Outcome::evaluated;
        one.loss = 1.0 / number;
        one.curve.resize(1);
        population.merge(one);
    }
    population.merge_membership(search::Id::make(0, 2, 7), 0);
    return population;
}

}  // namespace

TEST_CASE("round trip: RunBefore as a message") {
    const RunBefore before{.run = 77,
                           .restart = 3,
                           .earlier = {{0, 5}, {1, 4}},
                           .hours = 1.5,
                           .node_hours = 2.5,
                           .one_at_a_time = true,
                           .bred = {1, 2, 3, 4, 5}};

    const auto found = from_message<RunBefore>(to_message(before));

    CHECK(found.run == 77);
    CHECK(found.restart == 3);
    REQUIRE(found.earlier.size() == 2);
    CHECK(found.earlier[1].workers == 4);
    CHECK(found.hours == 1.5);
    CHECK(found.node_hours == 2.5);
    CHECK(found.one_at_a_time);
    CHECK(found.bred == before.bred);
}

TEST_CASE("share_run gives each leader the data of its island, and world rank 0 the whole population") {
    const int self = comm::rank_of(MPI_COMM_WORLD);
    const std::vector<int> island_of_worker{1, 0, 0, 1};
    const int island = island_of_worker[static_cast<std::size_t>(self)];
    const search::Population all = everything();
    OpenedRun opened;
    if (self == 0) {
        opened.population = all;
    }

    const OpenedRun run =
        share_run(MPI_COMM_WORLD, std::move(opened), island_of_worker, search::ExchangeKind::pollination, 2);

    CHECK(run.population.active(island) == all.active(island));
    const auto best = all.best(island, individuals);
    const auto known = run.population.best(island, individuals);
    CHECK(known.size() == best.size());
    CHECK(std::equal(known.begin(), known.end(), best.begin(), best.end(),
                     [](const auto* a, const auto* b) { return a->id == b->id && a->genome == b->genome; }));
    const auto unfinished = all.unfinished();
    CHECK(std::ssize(run.population.unfinished()) ==
          std::count_if(unfinished.begin(), unfinished.end(),
                        [&](const auto* one) { return self == 0 || one->island == island; }));
    CHECK(run.population.size() < (self == 0 ? individuals + 1 : individuals * 2 / 3));
}

}  // namespace finch::run
