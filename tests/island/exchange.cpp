// Exchange between whole islands: the state after all leaders have ended, for every topology and kind.
#include "island/world.hpp"

#include <array>
#include <cmath>
#include <doctest/doctest.h>

namespace finch::island {

namespace {

using search::Emigrants;
using search::ExchangeKind;
using search::Topology;

constexpr std::array all_topologies{Topology::all,    Topology::ring,  Topology::torus, Topology::star,
                                    Topology::random, Topology::nodes, Topology::matrix};
constexpr int islands = 6;

void set_topology(World& world, Topology topology) {
    world.exchange.topology = topology;
    world.exchange.node_of_island = {0, 0, 1, 1, 1, 2};
    world.exchange.matrix.assign(islands, std::vector<double>(islands, 0.3));
}

std::vector<search::Id> active_on(const search::Population& population, int island) {
    std::vector<search::Id> ids;
    for (const search::Individual* individual : population.best(island, population.active(island))) {
        ids.push_back(individual->id);
    }
    return ids;
}

/// Checks that all workers of an island know the same active individuals as the journals, and the archivist all
/// records.
void check_agreement(const World& world, const search::Population& recorded) {
    CHECK(world.workers_[0]->population() == recorded);
    for (std::size_t worker = 0; worker < world.workers_.size(); ++worker) {
        const int island = static_cast<int>(worker) % recorded.islands();
        CHECK(active_on(world.workers_[worker]->population(), island) == active_on(recorded, island));
    }
}

search::Space thirty_genes() {
    search::Space space;
    for (int gene = 0; gene < 30; ++gene) {
        space.genes.push_back({"x" + std::to_string(gene), search::RealGene{-5, 5}});
    }
    return space;
}

}  // namespace

TEST_CASE("exchange: with every topology and kind, the workers of an island agree at the end and nothing is lost") {
    for (const Topology topology : all_topologies) {
        for (const ExchangeKind kind : {ExchangeKind::migration, ExchangeKind::pollination}) {
            for (const Emigrants emigrants : {Emigrants::best, Emigrants::random, Emigrants::tournament}) {
                CAPTURE(word(topology));
                CAPTURE(word(emigrants));
                World world(2 * islands, islands, evaluations(180), kind, 11);
                set_topology(world, topology);
                world.exchange.emigrants = emigrants;

                CHECK(world.run(plenty));

                const search::Population recorded = world.recorded();
                std::size_t active = 0;
                std::size_t born = 0;
                for (int island = 0; island < islands; ++island) {
                    active += recorded.active(island);
                    born += recorded.finished_on(island);
                    CHECK((kind == ExchangeKind::migration || recorded.active(island) == recorded.finished_on(island)));
                }
                CHECK(active == 180);
                CHECK(born == 180);
                CHECK((kind == ExchangeKind::migration ? recorded.homes().size() : recorded.memberships().size()) > 0);
                check_agreement(world, recorded);
            }
        }
    }
}

TEST_CASE("migration: after kills and resumes, no individual is lost or on two islands, with every topology") {
    for (const Topology topology : all_topologies) {
        World world(islands, islands, evaluations(120), ExchangeKind::migration);
        set_topology(world, topology);
        for (const int rounds : {25, 60}) {
            world.run(rounds);
        }

        CHECK(world.run(plenty));

        const search::Population recorded = world.recorded();
        std::size_t active = 0;
        for (int island = 0; island < islands; ++island) {
            active += recorded.active(island);
        }
        CHECK(active == 120);
        CHECK(recorded.finished() == 120);
    }
}

TEST_CASE("exchange: a hundred runs of 30 genes, 10 migrants and 4 workers end without the deadlock of Propulate") {
    for (int run = 0; run < 100; ++run) {
        Budget budget;
        budget.generations = 15;
        const int islands_of_run = run % 2 == 0 ? 2 : 4;
        World world(4, islands_of_run, budget, run % 4 < 2 ? ExchangeKind::migration : ExchangeKind::pollination,
                    1 + run % 40);
        world.seed = static_cast<std::uint64_t>(run + 1);
        world.set_space(thirty_genes());
        world.exchange.migrants = 10;
        world.exchange.probability = 1;

        CHECK(world.run(20000));

        const search::Population recorded = world.recorded();
        CHECK(recorded.finished() == 60);
        std::size_t active = 0;
        for (int island = 0; island < islands_of_run; ++island) {
            active += recorded.active(island);
        }
        CHECK(active == 60);
        check_agreement(world, recorded);
    }
}

}  // namespace finch::island
