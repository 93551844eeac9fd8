// A Fold computes a state from results. For any order of arrival, the state equals the state of the results in
// canonical order.
#include "search/propagators/fold.hpp"

#include "finch/search/population.hpp"

#include "search/propagators/evolution.hpp"
#include "search/propagators/screened.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace finch;
using namespace finch::search;

namespace {

/// A state that depends on every result and on the order of the results.
struct Chain {
    std::uint64_t value = 1;
    std::size_t length = 0;
    void take(const Individual& individual, bool born_here) {
        value = value * 0x9E3779B97F4A7C15U + individual.id.value + (born_here ? 1 : 0);
        ++length;
    }
};

Individual result(std::uint32_t number, double finished, double loss = 0.5) {
    Individual individual;
    individual.id = Id::make(0, number % 7, number);
    individual.genome = {0.5, 0.5};
    individual.outcome = Outcome::evaluated;
    individual.loss = loss;
    individual.finished = finished;
    return individual;
}

/// Returns the results of a whole run, in the order in which their trainings ended. Some end at the same time.
std::vector<Individual> results(std::size_t count, std::uint64_t seed) {
    RandomStream random(seed, Purpose::test);
    std::vector<Individual> all;
    double now = 0;
    for (std::size_t i = 0; i < count; ++i) {
        now += random.uniform() < 0.2 ? 0 : random.uniform();
        all.push_back(result(static_cast<std::uint32_t>(i + 1), now));
    }
    return all;
}

std::uint64_t straight(const std::vector<Individual>& all) {
    Population population(ExchangeKind::none, 1);
    for (const Individual& individual : all) {
        population.merge(individual);
    }
    Fold<Chain> fold{Chain{}};
    return fold.over(population, 0).value;
}

/// Returns the number of random interleavings to test. FINCH_TEST_INTERLEAVINGS sets it for a long campaign.
std::uint64_t interleavings() {
    const char* text = std::getenv("FINCH_TEST_INTERLEAVINGS");
    return text == nullptr ? 2000 : std::stoull(text);
}

}  // namespace

TEST_CASE("Fold: the state does not depend on late results or on how often it is computed") {
    for (std::uint64_t seed = 0; seed < interleavings(); ++seed) {
        CAPTURE(seed);
        RandomStream random(seed, Purpose::test, 1);
        const std::size_t count = 1 + random.below(seed % 50 == 0 ? 1500 : 60);
        std::vector<Individual> all = results(count, seed);
        const std::uint64_t expected = straight(all);
        // Each result arrives up to `late` places after its place in the canonical order.
        const double late = static_cast<double>(random.below(4) * random.below(count + 1));
        std::vector<std::pair<double, std::size_t>> order;
        for (std::size_t i = 0; i < count; ++i) {
            order.emplace_back(static_cast<double>(i) + late * random.uniform(), i);
        }
        std::sort(order.begin(), order.end());
        Population population(ExchangeKind::none, 1);
        Fold<Chain> fold{Chain{}};
        for (const auto& [when, i] : order) {
            population.merge(all[i]);
            if (random.uniform() < 0.3) {
                (void)fold.over(population, 0);
            }
        }

        CHECK(fold.over(population, 0).value == expected);
        CHECK(fold.over(population, 0).length == count);
    }
}

TEST_CASE("Fold: a result that supersedes an earlier record counts once, with the new data and the new time") {
    std::vector<Individual> all = results(500, 3);
    for (const double moved : {0.0, 1.5, -40.0}) {
        Population population(ExchangeKind::none, 1);
        Fold<Chain> fold{Chain{}};
        for (const Individual& individual : all) {
            population.merge(individual);
        }
        (void)fold.over(population, 0);
        Individual better = all[400];
        better.epochs += 1;  // makes this record supersede the old one
        better.finished = std::max(0.0, better.finished + moved);
        REQUIRE(population.merge(better));

        std::vector<Individual> expected = all;
        expected[400] = better;
        CHECK(fold.over(population, 0).length == all.size());
        CHECK(fold.over(population, 0).value == straight(expected));
    }
}

TEST_CASE("Fold: a copy from another island counts only after its membership arrives, as not born on the island") {
    Population population(ExchangeKind::pollination, 2);
    Individual foreign = result(1, 1.0);
    foreign.island = 1;
    population.merge(foreign);
    population.merge(result(2, 2.0));
    Fold<Chain> fold{Chain{}};
    CHECK(fold.over(population, 0).length == 1);

    population.merge_membership(foreign.id, 0);

    CHECK(fold.over(population, 0).length == 2);
    Chain expected;
    expected.take(foreign, false);
    expected.take(result(2, 2.0), true);
    CHECK(fold.over(population, 0).value == expected.value);
}

TEST_CASE("Fold: a migrant counts on its island of birth and its present island, not on islands in between") {
    const Individual migrant = result(1, 1.0);
    const Individual other = result(2, 2.0);
    for (int island = 0; island < 3; ++island) {
        Population population(ExchangeKind::migration, 3);
        Fold<Chain> fold{Chain{}};
        population.merge(migrant);
        population.merge(other);
        for (const std::int32_t home : {1, 2}) {
            (void)fold.over(population, island);
            population.merge(migrant.id, {static_cast<std::uint32_t>(home), 0, home});
        }

        Chain expected;
        if (island != 1) {
            expected.take(migrant, island == 0);
        }
        if (island == 0) {
            expected.take(other, true);
        }
        CHECK(fold.over(population, island).value == expected.value);
    }
}

namespace {

Space mixed_space() {
    return {{{"a", RealGene{-5, 5}},
             {"b", RealGene{1e-4, 1, Scale::log}},
             {"c", IntGene{1, 9}},
             {"d", ChoiceGene{{"x", "y", "z"}}}}};
}

/// Returns mixed_space() with its choice declared as ordered.
Space numbers() {
    Space space = mixed_space();
    std::get<ChoiceGene>(space.genes[3].kind).ordered = true;
    return space;
}

double loss_of(const Genome& genome) {
    return genome[0] * genome[0] + std::pow(std::log10(genome[1]) + 2, 2) + std::abs(genome[2] - 4) + genome[3];
}

/// Runs a search with 12 individuals in flight. Every leader receives the results in a different order. Returns the
/// genomes that the leaders then breed from the same random stream.
std::vector<Genome> bred_by_leaders(const Space& space, const PropagatorOptions& options, std::uint32_t count,
                                    std::uint64_t seed) {
    const Stage all_known{.budget_used = 0.5, .evaluations = 12'000, .workers = 12, .births = count};
    std::vector<Individual> all;
    {
        Population population(ExchangeKind::none, 1);
        const auto propagator = make_propagator(options, space, seed);
        RandomStream random(seed, Purpose::test);
        for (std::uint32_t i = 0; i < count; ++i) {
            Stage stage = all_known;
            stage.budget_used = i / (2.0 * count);
            stage.births = i;
            RandomStream breeding(seed, Purpose::breeding, i);
            const Offspring offspring = propagator->breed(population, 0, stage, breeding);
            Individual individual = result(i + 1, 12 + i + 10 * random.uniform(), loss_of(offspring.genome));
            individual.genome = offspring.genome;
            individual.bred_by = offspring.bred_by;
            individual.parents = offspring.parents;
            individual.breeding = offspring.breeding;
            if (i % 50 == 49) {
                individual.outcome = Outcome::diverged;
                individual.loss = Individual::not_measured;
            }
            all.push_back(individual);
            if (i >= 12) {
                population.merge(all[i - 12]);
            }
        }
    }
    std::vector<Genome> bred;
    for (std::uint64_t leader = 0; leader < 4; ++leader) {
        RandomStream order(seed, Purpose::test, leader + 1);
        Population population(ExchangeKind::none, 1);
        const auto propagator = make_propagator(options, space, seed);
        for (const std::uint32_t i : order.permutation(count)) {
            population.merge(all[i]);
            if (leader > 1 && i % 16 == 0) {
                RandomStream unused(1, Purpose::test);
                (void)propagator->breed(population, 0, all_known, unused);
            }
        }
        RandomStream breeding(seed, Purpose::breeding, 1000);
        for (int i = 0; i < 5; ++i) {
            const Genome genome = propagator->breed(population, 0, all_known, breeding).genome;
            bred.insert(bred.end(), genome);
        }
    }
    return bred;
}

}  // namespace

TEST_CASE("Fold: under migration, it counts the individuals that were born or are now active on the island") {
    for (std::uint64_t seed = 0; seed < interleavings() / 10; ++seed) {
        CAPTURE(seed);
        RandomStream random(seed, Purpose::test, 5);
        Population finished(ExchangeKind::migration, 3);
        std::vector<Record> records;
        for (Individual& one : results(40, seed)) {
            one.island = static_cast<std::int32_t>(random.below(3));
            const auto moves = static_cast<std::uint32_t>(random.below(4));
            std::int32_t home = one.island;
            for (std::uint32_t version = 1; version <= moves; ++version) {
                home = static_cast<std::int32_t>((home + 1 + static_cast<int>(random.below(2))) % 3);
                records.emplace_back(Move{one, {version, 0, home}});
            }
            finished.merge(one.id, {moves, 0, home});
            finished.merge(one);
            records.emplace_back(Result{one});
        }
        Population moved(ExchangeKind::migration, 3);
        Fold<Chain> fold{Chain{}};
        for (const std::uint32_t one : random.permutation(static_cast<std::uint32_t>(records.size()))) {
            moved.merge(records[one]);
            if (random.uniform() < 0.5) {
                fold.over(moved, 0);
            }
        }

        Fold<Chain> straight_fold{Chain{}};
        CHECK(fold.over(moved, 0).value == straight_fold.over(finished, 0).value);
        CHECK(moved == finished);
    }
}

TEST_CASE("leaders with the same results breed the same genomes, regardless of the order of arrival") {
    const auto check_space = [](const Space& space, const PropagatorOptions& options, std::uint32_t count,
                                std::uint64_t seed) {
        CAPTURE(options.index());
        const std::vector<Genome> bred = bred_by_leaders(space, options, count, seed);
        for (std::size_t i = 5; i < bred.size(); ++i) {
            CHECK(bred[i] == bred[i % 5]);
        }
    };
    const auto check = [&](const PropagatorOptions& options, std::uint32_t count, std::uint64_t seed) {
        check_space(mixed_space(), options, count, seed);
    };
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        check(EvolutionOptions{}, 600, seed);
        check(CmaEsOptions{}, 600, seed);
        check(SwarmOptions{.particles = 9}, 600, seed);
        check_space(numbers(), NelderMeadOptions{.parallel = 2}, 600, seed);
    }
    check(ScreenedOptions{}, 100, 1);
    check(AutomaticOptions{}, 100, 2);
}
