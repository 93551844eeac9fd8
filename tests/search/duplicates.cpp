#include "finch/search/duplicates.hpp"

#include "search/samples.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::search;
using namespace finch::search::samples;

namespace {

Individual with_genome(Individual individual, Genome genome) {
    individual.genome = std::move(genome);
    return individual;
}

Id twin_of(const Population& population, int island, const Genome& genome) {
    KnownGenomes known;
    known.update(population, island, true);
    const Individual* twin = known.find(genome);
    return twin != nullptr ? twin->id : Id{};
}

}  // namespace

TEST_CASE("whatever the outcome, what was evaluated or is in training on the island is known") {
    Population population(ExchangeKind::pollination, 2);
    population.merge(with_genome(evaluated(1, 0.5), {1, 1}));
    population.merge(with_genome(ended(2, Outcome::diverged, std::nan("")), {2, -0.0}));
    population.merge(with_genome(ended(3, Outcome::failed, std::nan("")), {3, 3}));
    population.merge(with_genome(bred(4), {4, 4}));
    population.merge(with_genome(evaluated(5, 0.5, 1), {5, 5}));
    population.merge(with_genome(bred(6, 1), {6, 6}));

    CHECK(twin_of(population, 0, {1, 1}) == bred(1).id);
    CHECK(twin_of(population, 0, {2, 0}) == bred(2).id);
    CHECK(twin_of(population, 0, {3, 3}) == bred(3).id);
    CHECK(twin_of(population, 0, {4, 4}) == bred(4).id);
    CHECK(twin_of(population, 0, {5, 5}) == Id{});
    CHECK(twin_of(population, 0, {6, 6}) == Id{});
    population.merge_membership(bred(5).id, 0);
    CHECK(twin_of(population, 0, {5, 5}) == bred(5).id);
    CHECK(twin_of(population, 0, {1, 2}) == Id{});
}

TEST_CASE("whose result is taken over does not depend on the order in which they came to be known") {
    Individual repeated = with_genome(evaluated(1, 0.5), {7, 7});
    repeated.bred_by = Operator::repeat;
    const Individual early = with_genome(evaluated(3, 0.5), {7, 7});
    const Individual late = with_genome(evaluated(4, 0.4), {7, 7});
    const Individual reused = with_result_of(with_genome(bred(2), {7, 7}), early, 9);
    const Individual running = with_genome(bred(9), {7, 7});
    std::vector<Individual> all{repeated, early, late, reused, running};
    RandomStream random(1, Purpose::test);

    for (int i = 0; i < 50; ++i) {
        Population population(ExchangeKind::none, 1);
        KnownGenomes known;
        for (const std::uint32_t one : random.permutation(5)) {
            population.merge(all[one]);
            known.update(population, 0, true);
        }
        CHECK(known.find({7, 7})->id == early.id);
    }
}

TEST_CASE("a result that is taken over is that of the one who was trained, and takes no training of its own") {
    Individual trained = complete(1);
    trained.genome = {7, 7};
    trained.parameters = 1000;
    trained.pruning = {2, 0.5};
    Individual next = with_genome(bred(2), {7, 7});
    next.bred_by = Operator::crossover;
    next.born = 90;

    const Individual reused = with_result_of(next, trained, 100);
    const Individual again = with_result_of(with_genome(bred(3), {7, 7}), reused, 200);

    CHECK(reused.reused_from == trained.id);
    CHECK(again.reused_from == trained.id);
    CHECK(reused.outcome == Outcome::evaluated);
    CHECK(reused.loss == trained.loss);
    CHECK(reused.accuracy == trained.accuracy);
    CHECK(reused.epochs == trained.epochs);
    CHECK(reused.parameters == 1000);
    CHECK(reused.pruning.rung == 2);
    CHECK(reused.bred_by == Operator::crossover);
    CHECK(reused.born == 90);
    CHECK(reused.finished == 100);
    CHECK(reused.started == 0);
    CHECK(reused.training_seconds == 0);
    CHECK(reused.curve.empty());
}

TEST_CASE("of equal losses one that was trained is better than one that took the result over") {
    const Individual trained = evaluated(5, 0.25);
    const Individual reused = with_result_of(bred(2), trained, 1);
    Population population(ExchangeKind::none, 1);
    population.merge(reused);
    population.merge(trained);

    CHECK(better(trained, reused));
    CHECK_FALSE(better(reused, trained));
    CHECK(better(reused, evaluated(1, 0.5)));
    CHECK(population.best()->id == trained.id);
    CHECK(population.settled() == 2);
    CHECK(population.evaluations() == 1);
    CHECK(population.settled_on(0) == 1);
}
