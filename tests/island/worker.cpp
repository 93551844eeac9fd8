#include "finch/island/worker.hpp"

#include "island/world.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <set>

namespace finch::island {

TEST_CASE("workers use a budget of evaluations exactly with every exchange kind, and all leaders end") {
    for (const auto kind :
         {search::ExchangeKind::none, search::ExchangeKind::migration, search::ExchangeKind::pollination}) {
        for (const int budget : {1, 3, 4, 50, 333}) {
            World world(4, 2, evaluations(budget), kind);

            CHECK(world.run(plenty));

            CHECK(world.recorded().finished() == static_cast<std::size_t>(budget));
            CHECK(world.workers_[0]->population().finished() == static_cast<std::size_t>(budget));
            for (const auto& worker : world.workers_) {
                CHECK(worker->exit_reason() == ExitReason::complete);
            }
        }
    }
}

TEST_CASE("at the end, all leaders of an island know the same best individuals, and the archivist knows all records") {
    for (const auto kind : {search::ExchangeKind::migration, search::ExchangeKind::pollination}) {
        World world(6, 3, evaluations(200), kind, 20);
        CHECK(world.run(plenty));
        const search::Population recorded = world.recorded();

        CHECK(world.workers_[0]->population() == recorded);
        for (int i = 0; i < 6; ++i) {
            const int island = i % 3;
            const auto mine = world.workers_[static_cast<std::size_t>(i)]->population().best(island, 1000);
            const auto all = recorded.best(island, 1000);
            REQUIRE(mine.size() == all.size());
            for (std::size_t k = 0; k < all.size(); ++k) {
                CHECK(mine[k]->id == all[k]->id);
            }
        }
    }
}

TEST_CASE("learning curves are sent only to the archivist") {
    World world(4, 2, evaluations(60), search::ExchangeKind::pollination);
    world.epochs = 3;

    CHECK(world.run(plenty));

    CHECK(world.workers_[0]->population() == world.recorded());
    for (std::size_t i = 0; i < 4; ++i) {
        const search::Population& population = world.workers_[i]->population();
        CHECK(population.size() > 15);
        for (const auto& [id, individual] : population.individuals()) {
            CHECK(individual.curve.size() == (i == 0 ? 3 : 0));
        }
    }
}

TEST_CASE("under migration, every evaluated individual is active on exactly one island") {
    World world(4, 2, evaluations(150), search::ExchangeKind::migration);
    CHECK(world.run(plenty));
    const search::Population recorded = world.recorded();

    CHECK(recorded.active(0) + recorded.active(1) == 150);
    CHECK_FALSE(recorded.homes().empty());
}

TEST_CASE("after kills and restarts with other workers, no result is lost or repeated, and the budget is exact") {
    for (const int rounds : {5, 17, 60, 141}) {
        World world(4, 2, evaluations(120), search::ExchangeKind::pollination);
        std::map<search::Id, double> known;
        const std::vector<int> layouts{4, 2, 5, 3, 2, 4};
        for (const int workers : layouts) {
            world.run(rounds, workers);
            const search::Population recorded = world.recorded();
            for (const auto& [id, loss] : known) {
                REQUIRE(recorded.find(id) != nullptr);
                CHECK(recorded.find(id)->loss == loss);
            }
            for (const auto& [id, individual] : recorded.individuals()) {
                if (individual.finished_training()) {
                    known[id] = individual.loss;
                }
            }
        }
        CHECK(world.run(plenty, 4));
        CHECK(world.recorded().finished() == 120);
        CHECK(world.recorded().size() == 120);
    }
}

TEST_CASE("a worker with several slots uses the budget exactly") {
    World world(2, 1, evaluations(40), search::ExchangeKind::none);
    world.slots = 4;

    CHECK(world.run(plenty));

    CHECK(world.recorded().finished() == 40);
}

TEST_CASE("a resumed individual belongs to its island of birth, no matter which worker trains it") {
    for (const int slots : {1, 3}) {
        for (const int workers : {2, 3, 6}) {
            World world(4, 2, evaluations(60), search::ExchangeKind::pollination);
            world.slots = slots;
            CHECK_FALSE(world.run(25));
            world.stop = StopRequest::orderly;
            CHECK(world.go_on(plenty));
            world.stop = StopRequest::none;
            CHECK(world.recorded().unfinished().size() > 1);

            CHECK(world.run(plenty, workers));

            const search::Population recorded = world.recorded();
            for (int worker = 0; worker < workers; ++worker) {
                const int island = worker % 2;
                const auto& mine = world.workers_[static_cast<std::size_t>(worker)]->population();
                for (const search::Individual* individual : recorded.best(island, 1000)) {
                    CHECK(mine.find(individual->id) != nullptr);
                    CHECK(mine.is_member(individual->id, island));
                }
                CHECK(mine.best(island, 1000).size() == recorded.best(island, 1000).size());
            }
        }
    }
}

TEST_CASE("in each start, every attempt is recorded before its training begins") {
    World world(2, 1, evaluations(4), search::ExchangeKind::none);
    world.looks = {1000000, 1000000};
    CHECK_FALSE(world.run(20));
    CHECK_FALSE(world.run(20));
    CHECK_FALSE(world.run(20));

    const search::Population recorded = world.recorded();
    CHECK(recorded.unfinished().size() == 2);
    for (const search::Individual* individual : recorded.unfinished()) {
        CHECK(individual->attempt.restart == 2);
        CHECK(individual->attempt.worker >= 0);
    }
}

TEST_CASE("an individual with a recorded death of its process is trained alone in its worker, after the others") {
    World world(1, 1, evaluations(6), search::ExchangeKind::none);
    world.slots = 3;
    world.looks = {30};
    CHECK_FALSE(world.run(20));
    const search::Population begun = world.recorded();
    REQUIRE(begun.unfinished().size() > 1);
    search::Individual suspect = *begun.unfinished().front();
    suspect.attempt.deaths = 1;
    world.add(search::Started{suspect});

    CHECK(world.run(plenty));

    CHECK(world.recorded().finished() == 6);
    const auto& evaluator = *world.evaluators_[0];
    CHECK(evaluator.beside.at(suspect.id) == 0);
    CHECK(evaluator.started.size() > 2);
    CHECK(evaluator.started[0] != suspect.id);
    CHECK(std::find(evaluator.joined_by.begin(), evaluator.joined_by.end(), suspect.id) == evaluator.joined_by.end());
}

TEST_CASE("one_at_a_time: the whole run trains unfinished individuals one after the other, then breeds") {
    World world(4, 2, evaluations(40), search::ExchangeKind::pollination);
    world.looks = {40, 40, 40, 40};
    CHECK_FALSE(world.run(35));
    const search::Population before = world.recorded();
    CHECK(before.unfinished().size() > 2);
    world.one_at_a_time = true;

    world.run(1);
    std::size_t most = 0;
    while (world.bred_in_last_start() == 0) {
        std::size_t now = 0;
        for (const auto& evaluator : world.evaluators_) {
            now += evaluator->running();
        }
        most = std::max(most, now);
        REQUIRE_FALSE(world.go_on(1));
    }
    CHECK(most == 1);
    const search::Population at_first_breeding = world.recorded();
    for (const search::Individual* individual : before.unfinished()) {
        CHECK(at_first_breeding.find(individual->id)->finished_training());
    }
    CHECK(world.go_on(plenty));
    CHECK(world.recorded().finished() == 40);
    // Worker 0 of island 0 trained all unfinished individuals. The leaders of island 1 know the results of their own
    // island.
    for (const search::Individual* individual : before.unfinished()) {
        for (const int worker : {1, 3}) {
            const auto& known = world.workers_[static_cast<std::size_t>(worker)]->population();
            CHECK((individual->island == 0 || known.find(individual->id)->finished_training()));
        }
    }
}

TEST_CASE("a genome with an impossible network is replaced; the individual fails if all genomes are impossible") {
    World some(2, 1, evaluations(60), search::ExchangeKind::none);
    some.exists = [](const search::Genome& genome) { return genome[0] > 0; };
    World none(1, 1, evaluations(3), search::ExchangeKind::none);
    none.exists = [](const search::Genome&) { return false; };

    CHECK(some.run(plenty));
    CHECK(none.run(plenty));

    const search::Population bred = some.recorded();
    for (const auto& [id, individual] : bred.individuals()) {
        CHECK(individual.genome[0] > 0);
    }
    CHECK(none.recorded().finished() == 3);
    CHECK(none.recorded().best() == nullptr);
}

TEST_CASE("each island breeds with its own propagator, also after a restart with other propagators") {
    World world(5, 2, evaluations(200), search::ExchangeKind::pollination);
    world.of_islands = {search::CmaEsOptions{}, search::SwarmOptions{}};
    world.run(60);
    world.of_islands = {search::SwarmOptions{}, search::NelderMeadOptions{}};
    CHECK(world.run(plenty));

    const search::Population recorded = world.recorded();
    CHECK(recorded.finished() == 200);
    std::map<std::pair<std::uint32_t, int>, std::set<search::Operator>> operators;
    for (const auto& [id, individual] : recorded.individuals()) {
        operators[{id.restart(), individual.island}].insert(individual.bred_by);
    }
    using search::Operator;
    using Set = std::set<Operator>;
    CHECK(operators[{0, 0}] == Set{Operator::cma_es});
    CHECK(operators[{0, 1}] == Set{Operator::random});  // the first positions of the particles are random
    CHECK(operators[{1, 0}] == Set{Operator::random, Operator::swarm});
    CHECK(operators[{1, 1}] == Set{Operator::simplex});
}

TEST_CASE("a propagator plans with the number of evaluations of its own island, not of the whole search") {
    World world(8, 8, evaluations(160), search::ExchangeKind::none);
    world.propagator = search::ScreenedOptions{};
    search::Space space;
    for (int i = 0; i < 10; ++i) {
        space.genes.push_back({"x" + std::to_string(i), search::RealGene{0, 1}});
    }
    world.set_space(space);
    CHECK(world.run(plenty));

    std::map<search::Operator, int> births;
    const search::Population recorded = world.recorded();
    for (const auto& [id, individual] : recorded.individuals()) {
        ++births[individual.bred_by];
        CHECK(individual.breeding.budget_used <= 1);
    }
    // With 20 evaluations per island, six individuals are bred before the model. With 160 evaluations, 20 individuals
    // would be bred before it.
    CHECK(births[search::Operator::model_screened] > 70);
}

TEST_CASE("after kills and restarts, every leader breeds the same genomes as with all records of the run") {
    const auto check = [](search::ExchangeKind kind, const search::PropagatorOptions& options, int budget = 400) {
        CAPTURE(options.index());
        World world(4, 2, evaluations(budget), kind);
        world.propagator = options;
        for (const int rounds : {40, 90, 200}) {
            world.run(rounds, rounds == 90 ? 3 : 4);
        }
        CHECK(world.run(plenty));
        const search::Population recorded = world.recorded();
        CHECK(static_cast<int>(recorded.finished()) == budget);
        for (std::size_t worker = 0; worker < world.workers_.size(); ++worker) {
            const int island = static_cast<int>(worker) % 2;
            const auto bred_from = [&](const search::Population& population) {
                const auto propagator = search::make_propagator(world.propagator, plane(), 1);
                std::vector<search::Genome> genomes;
                for (std::uint64_t i = 0; i < 20; ++i) {
                    RandomStream random(1, Purpose::test, i);
                    const search::Stage stage{.budget_used = 0.5,
                                              .evaluations = budget,
                                              .workers = 2,
                                              .births = static_cast<std::uint64_t>(budget) / 2};
                    genomes.push_back(propagator->breed(population, island, stage, random).genome);
                }
                return genomes;
            };
            CHECK(bred_from(world.workers_[worker]->population()) == bred_from(recorded));
        }
    };
    for (const auto kind : {search::ExchangeKind::migration, search::ExchangeKind::pollination}) {
        check(kind, search::EvolutionOptions{});
    }
    check(search::ExchangeKind::pollination, search::CmaEsOptions{});
    check(search::ExchangeKind::pollination, search::SwarmOptions{.particles = 7});
    check(search::ExchangeKind::pollination, search::NelderMeadOptions{});
    for (const search::PropagatorOptions& by_model : {search::PropagatorOptions{search::ScreenedOptions{}},
                                                      search::PropagatorOptions{search::AutomaticOptions{}}}) {
        check(search::ExchangeKind::pollination, by_model, 160);
        check(search::ExchangeKind::migration, by_model, 160);
    }
}

}  // namespace finch::island
