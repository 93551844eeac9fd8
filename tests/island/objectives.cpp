// Several objectives: all leaders of an island have the same front, for any order of arrival.
#include "finch/search/objectives.hpp"

#include "finch/island/worker.hpp"

#include "island/world.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

namespace finch::island {
namespace {

std::vector<search::Id> ids(const std::vector<const search::Individual*>& individuals) {
    std::vector<search::Id> found;
    for (const search::Individual* one : individuals) {
        found.push_back(one->id);
    }
    return found;
}

}  // namespace

TEST_CASE("with costs, all leaders of an island have the same active individuals in the same order, despite kills") {
    for (const auto kind :
         {search::ExchangeKind::none, search::ExchangeKind::migration, search::ExchangeKind::pollination}) {
        World world(4, 2, evaluations(160), kind);
        world.costs = {search::Cost{search::Quantity::parameters}};
        for (const int rounds : {30, 70, 45, 120}) {
            world.run(rounds, rounds % 4 == 2 ? 3 : 4);
        }
        CHECK(world.run(plenty, 5));

        const search::Population recorded = world.recorded();
        CHECK(recorded.finished() == 160);
        CHECK(world.workers_[0]->population() == recorded);
        for (int worker = 0; worker < 5; ++worker) {
            const int island = worker % 2;
            const auto& mine = world.workers_[static_cast<std::size_t>(worker)]->population();
            CHECK(ids(mine.best(island, 1000)) == ids(recorded.best(island, 1000)));
        }
        if (kind == search::ExchangeKind::migration) {
            CHECK(recorded.active(0) + recorded.active(1) == 160);
            CHECK_FALSE(recorded.homes().empty());
        }
    }
}

TEST_CASE("with costs, the search finds the whole front, not only the smallest loss") {
    // The objectives are the sum of x² and (2 - x0)². The front is x0 in [0, 2] with x1 = 0. The smallest loss is one
    // end of it.
    const auto bred_at_the_other_end = [](const std::vector<search::Cost>& costs) {
        World world(3, 1, evaluations(900), search::ExchangeKind::none);
        world.costs = costs;
        world.propagator = search::GeneticOptions{.population = 30};
        CHECK(world.run(plenty));
        const search::Population recorded = world.recorded();
        return std::count_if(recorded.individuals().begin(), recorded.individuals().end(), [](const auto& one) {
            const search::Genome& genome = one.second.genome;
            return 1 < genome[0] && genome[0] < 2.2 && std::abs(genome[1]) < 0.5;
        });
    };

    CHECK(bred_at_the_other_end({search::Cost{search::Quantity::parameters}}) > 3 * bred_at_the_other_end({}));
}

}  // namespace finch::island
