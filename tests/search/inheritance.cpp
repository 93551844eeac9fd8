// Population-based training: heirs that continue the best trainings at a rung.
#include "finch/search/inheritance.hpp"

#include "finch/search/duplicates.hpp"

#include "search/samples.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <set>

using namespace finch;
using namespace finch::search;
using namespace finch::search::samples;

namespace {

constexpr Rungs rungs{1, 3};  // epochs 1, 3, 9, …

/// Returns a complete training with `loss` at rungs 1 and 2.
Individual survivor(std::uint32_t number, double loss) {
    Individual individual = evaluated(number, loss / 2);
    individual.epochs = 9;
    individual.pruning = Pruning{2, loss, {loss, loss}};
    return individual;
}

InitialDesign design() {
    InitialDesign of;
    of.space.genes = {{"lr", RealGene{0, 1}}, {"layers", IntGene{1, 100}}};
    return of;
}

/// Returns the heir `number` of `population` with the options `best`; an individual without genome if none is due.
Individual heir_of(
    const Population& population, std::uint32_t number, const InheritOptions& options = {2, 2, 0.1, rungs},
    const std::function<bool(const Individual&)>& can_continue = [](const auto&) { return true; }) {
    Individual newborn = bred(number);
    newborn.genome.clear();
    RandomStream random(1, Purpose::inheritance, newborn.id.value);
    const bool is_made = make_heir(newborn, options, design(), population, random, can_continue);
    CHECK(is_made == newborn.is_heir());
    return newborn;
}

/// Returns three complete trainings; trainings pruned at rungs 1, 1 and 2; and a training pruned at another island.
Population some_trainings() {
    Population population(ExchangeKind::none, 2);
    for (const Individual& one : {survivor(1, 3), survivor(2, 1), survivor(3, 2), pruned(4, 1, 9), pruned(5, 1, 8),
                                  pruned(6, 2, 7), pruned(7, 2, 0.5, 1)}) {
        population.merge(one);
    }
    return population;
}

}  // namespace

TEST_CASE("Rungs: epoch_of is the epoch at which passed() reaches the rung") {
    for (const Rungs& some : {rungs, Rungs{2, 2}, Rungs{5, 10}}) {
        for (std::int32_t rung = 1; rung <= static_cast<std::int32_t>(most_rungs); ++rung) {
            CHECK(some.passed(some.epoch_of(rung)) == rung);
            CHECK(some.passed(some.epoch_of(rung) - 1) == rung - 1);
        }
    }
    CHECK_FALSE(rungs_of(CurveOptions{}));
    CHECK(rungs_of(HalvingOptions{4, 2})->epoch_of(3) == 16);
}

TEST_CASE("an heir replaces each pruned training, from the highest rung on, once enough individuals have ended") {
    Population population = some_trainings();
    CHECK_FALSE(heir_of(population, 10, {7, 2, 0.1, rungs}).is_heir());  // six have ended on the island

    std::vector<std::int32_t> epochs;
    for (std::uint32_t number = 10; number < 14; ++number) {
        const Individual heir = heir_of(population, number);
        epochs.push_back(heir.inherited_epochs);
        if (heir.is_heir()) {
            population.merge(heir);
        }
    }

    CHECK(epochs == std::vector<std::int32_t>{3, 1, 1, 0});
}

TEST_CASE("the retry of a failed heir replaces no other pruned training") {
    Population population = some_trainings();
    Individual failed = heir_of(population, 10);
    failed.outcome = Outcome::failed;
    population.merge(failed);
    Individual again = bred(11);
    again.retry_of = failed.id;
    begin_at_rung(again, failed.inherited_from, 2, rungs);
    CHECK(again.inherited_epochs == failed.inherited_epochs);
    CHECK(again.epochs == failed.epochs);
    CHECK(again.pruning->rung == failed.pruning->rung);
    population.merge(again);

    for (std::uint32_t number = 12; number < 14; ++number) {
        const Individual heir = heir_of(population, number);
        CHECK(heir.inherited_epochs == 1);
        population.merge(heir);
    }
    CHECK_FALSE(heir_of(population, 14).is_heir());
}

TEST_CASE("an heir begins with the best trainings that continued after the rung, and names its parent") {
    Population population = some_trainings();
    for (const std::uint32_t number : {101, 102, 103, 104}) {
        population.merge(pruned(number, 2, 10));
    }
    std::map<Id, int> parents;

    for (std::uint32_t number = 10; number < 60; ++number) {
        const Individual heir = heir_of(population, number);
        ++parents[heir.inherited_from];
        const Individual* const parent = population.find(heir.inherited_from);
        REQUIRE(parent != nullptr);
        CHECK(heir.parents == std::array{parent->id, Id{}});
        CHECK(heir.bred_by == Operator::perturbation);
        CHECK(heir.epochs == 3);
        CHECK(heir.own_epochs() == 0);
        CHECK(heir.pruning->rung == 2);
        CHECK(heir.genome != parent->genome);
        CHECK(std::abs(heir.genome[0] - parent->genome[0]) < 0.5);
        CHECK(design().space.contains(heir.genome));
        CHECK_FALSE(problem_of(heir, design().space));
    }

    REQUIRE(parents.size() == 2);  // of 8 trainings: those with the losses 1 and 2, but not that with 3
    CHECK(parents[Id::make(0, 1, 2)] > 10);
    CHECK(parents[Id::make(0, 1, 3)] > 10);
}

TEST_CASE("the parents are the best quarter at the rung, and at most `parents`") {
    Population population = some_trainings();
    const auto count = [&](std::int64_t most) {
        std::set<Id> parents;
        for (std::uint32_t number = 10; number < 60; ++number) {
            parents.insert(heir_of(population, number, {2, most, 0.1, rungs}).inherited_from);
        }
        return parents.size();
    };

    CHECK(count(3) == 1);  // of 4 trainings
    for (std::uint32_t number = 101; number < 109; ++number) {
        population.merge(pruned(number, 2, 10));
    }
    CHECK(count(5) == 3);
    CHECK(count(2) == 2);
}

TEST_CASE("an heir depends on the results, its id and the seed, but not on the order of the results") {
    const Population population = some_trainings();
    Population reversed(ExchangeKind::none, 2);
    for (const auto& one : {pruned(7, 2, 0.5, 1), pruned(6, 2, 7), pruned(5, 1, 8), pruned(4, 1, 9), survivor(3, 2),
                            survivor(2, 1), survivor(1, 3)}) {
        reversed.merge(one);
    }

    for (std::uint32_t number = 10; number < 20; ++number) {
        CHECK(identical(heir_of(population, number), heir_of(reversed, number)));
    }
    CHECK(heir_of(population, 10).genome != heir_of(population, 11).genome);
}

TEST_CASE("a gene that the parent's weights do not fit keeps its value; a parent without a snapshot has no heirs") {
    const Population population = some_trainings();
    const auto same_layers = [&](const Individual& heir) {
        const Individual* const parent = population.find(heir.inherited_from);
        return heir.inherited_epochs == 1 && heir.genome[1] == parent->genome[1];
    };

    for (std::uint32_t number = 10; number < 20; ++number) {
        const Individual heir = heir_of(population, number, {2, 2, 0.1, rungs}, same_layers);
        const Individual* const parent = population.find(heir.inherited_from);
        CHECK(heir.inherited_epochs == 1);  // no snapshots at the second rung
        CHECK(heir.genome[0] != parent->genome[0]);
        CHECK(heir.genome[1] == parent->genome[1]);
    }
    CHECK_FALSE(heir_of(population, 10, {2, 2, 0.1, rungs}, [](const auto&) { return false; }).is_heir());
}

TEST_CASE("differ_only_in: genes that are not named must be equal, and active in both genomes or in none") {
    Space space;
    space.genes = {{"lr", RealGene{0, 1}},
                   {"optimizer", ChoiceGene{{"sgd", "adam"}}},
                   {"momentum", RealGene{0, 1}, {{.gene = 1, .values = {0}}}}};
    const Genome sgd{0.1, 0, 0.5};

    CHECK(differ_only_in({}, space, sgd, sgd));
    CHECK(differ_only_in({"lr", "momentum"}, space, sgd, {0.2, 0, 0.6}));
    CHECK_FALSE(differ_only_in({"lr"}, space, sgd, {0.2, 0, 0.6}));
    CHECK_FALSE(differ_only_in({"optimizer"}, space, sgd, {0.1, 1, 0.5}));  // momentum is not active any more
    CHECK(differ_only_in({"optimizer", "momentum"}, space, sgd, {0.1, 1, 0.5}));
    CHECK(differ_only_in({}, space, {0.1, 1, 0.5}, {0.1, 1, 0.6}));  // momentum is not active
}

TEST_CASE("moved genes obey the constraints") {
    const Population population = some_trainings();
    InitialDesign of = design();
    of.constraints = {Constraint("lr <= 0.5", of.space)};

    for (std::uint32_t number = 10; number < 60; ++number) {
        Individual heir = bred(number);
        RandomStream random(1, Purpose::inheritance, number);
        REQUIRE(make_heir(heir, {2, 2, 0.1, rungs}, of, population, random, [](const auto&) { return true; }));
        CHECK(heir.genome[0] <= 0.5);
    }
}

TEST_CASE("budgets count the epochs after the rung, and an heir is no known genome") {
    Population population(ExchangeKind::none, 1);
    Individual heir = survivor(2, 1);
    heir.inherited_from = Id::make(0, 1, 1);
    heir.inherited_epochs = 3;
    population.merge(survivor(1, 3));
    population.merge(heir);

    CHECK(population.epochs() == 9 + 6);
    CHECK(population.epochs_on(0) == 9 + 6);
    KnownGenomes known;
    known.update(population, 0, true);
    CHECK(known.find(survivor(1, 3).genome) != nullptr);
    CHECK(known.find(heir.genome) == nullptr);
}

TEST_CASE("halving does not compare with an heir at the rungs that it has inherited") {
    const auto threshold_with = [](std::int32_t inherited_epochs) {
        Population population(ExchangeKind::none, 1);
        Individual complete = evaluated(1, 0.25);
        complete.epochs = 9;
        complete.inherited_from = Id::make(0, 1, 9);
        complete.inherited_epochs = inherited_epochs;
        population.merge(complete);
        Individual mine = bred(2);
        static_cast<void>(ends_early(HalvingOptions{1, 3}, std::vector{5.0, 4.0, 3.0}, 9, population, mine));
        return mine.pruning->threshold;
    };

    CHECK(threshold_with(1) == 0.25);
    CHECK(threshold_with(3) == 3);
}
