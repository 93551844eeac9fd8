#include "finch/search/duplicates.hpp"

#include "finch/search/final_choice.hpp"

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

TEST_CASE("KnownGenomes finds every genome that was evaluated or is in training on the island, with any outcome") {
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

TEST_CASE("KnownGenomes: the choice of the reused result does not depend on the order of arrival") {
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

TEST_CASE("with_result_of: copies the result of the trained individual and records no training of its own") {
    Individual trained = complete(1);
    trained.genome = {7, 7};
    trained.parameters = 1000;
    trained.pruning = Pruning{2, 0.5};
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
    CHECK(reused.pruning->rung == 2);
    CHECK(reused.bred_by == Operator::crossover);
    CHECK(reused.born == 90);
    CHECK(reused.finished == 100);
    CHECK(reused.started == 0);
    CHECK(reused.training_seconds == 0);
    CHECK(reused.joules == 0);
    CHECK(reused.curve.empty());
}

TEST_CASE("better: of two individuals with equal losses, the trained one ranks before the reused one") {
    const Individual trained = evaluated(5, 0.25);
    const Individual reused = with_result_of(bred(2), trained, 1);
    Population population(ExchangeKind::none, 1);
    population.merge(reused);
    population.merge(trained);

    CHECK(better(trained, reused));
    CHECK_FALSE(better(reused, trained));
    CHECK(better(reused, evaluated(1, 0.5)));
    CHECK(population.best()->id == trained.id);
    CHECK(population.finished() == 2);
    CHECK(population.evaluations() == 1);
    CHECK(population.finished_on(0) == 1);
}

TEST_CASE("is_reusable: true only for results of another run that depend on the genes alone") {
    const auto is = [](Outcome outcome, double loss) { return is_reusable(ended(1, outcome, loss)); };
    CHECK(is(Outcome::evaluated, 0.5));
    CHECK(is(Outcome::diverged, std::nan("")));
    CHECK_FALSE(is(Outcome::pruned, 0.5));
    CHECK_FALSE(is(Outcome::failed, std::nan("")));
    CHECK_FALSE(is(Outcome::out_of_memory, std::nan("")));
    CHECK_FALSE(is(Outcome::stopped, 0.5));
    CHECK_FALSE(is_reusable(bred(1)));

    Individual repeat = evaluated(1, 0.5);
    repeat.bred_by = Operator::repeat;
    Individual child = evaluated(1, 0.5);
    child.inherited_from = bred(2).id;
    Individual copy = with_result_of(bred(2), evaluated(1, 0.5), 1);
    CHECK_FALSE(is_reusable(repeat));
    CHECK_FALSE(is_reusable(child));
    CHECK_FALSE(is_reusable(copy));
    copy.reused_run = 99;
    CHECK(is_reusable(copy));
}

TEST_CASE("OtherResults: a reused result names its run of origin, even if another run had reused it before") {
    Individual far = with_genome(evaluated(1, 0.25), {1, 1});
    far.reused_from = bred(7).id;
    far.reused_run = 99;
    Individual near = with_genome(evaluated(2, 0.5), {2, 2});
    near.pruning = Pruning{3, 0.5};
    near.curve.resize(2);
    OtherResults known;
    known.add({5, 5}, near, 42);
    known.add({5, 5}, far, 42);
    known.add({6, -0.0}, far, 42);

    const Individual reused = with_result_of(with_genome(bred(2), {5, 5}), *known.find({5, 5}), 9);

    CHECK(known.all().size() == 2);
    CHECK(known.find({1, 1}) == nullptr);
    CHECK(reused.id == bred(2).id);
    CHECK(reused.reused_from == near.id);
    CHECK(reused.reused_run == 42);
    CHECK(reused.loss == 0.5);
    CHECK(reused.curve.empty());
    CHECK(reused.pruning->rung == 0);
    CHECK(problem_of(reused, {{{"a", RealGene{0, 9}}, {"b", RealGene{0, 9}}}}) == std::nullopt);
    CHECK(known.find({6, 0})->reused_from == bred(7).id);
    CHECK(known.find({6, 0})->reused_run == 99);
    CHECK(with_result_of(bred(3), reused, 10).reused_run == 42);

    known.forget(99);
    CHECK(known.all().size() == 1);
}

TEST_CASE("a reused result of another run can be the best, but it has no weights") {
    Individual other = with_genome(evaluated(1, 0.1), {3, 3});
    other.reused_from = bred(9).id;
    other.reused_run = 42;
    const Individual trained = with_genome(evaluated(2, 0.4), {4, 4});
    const Individual twin = with_result_of(with_genome(bred(3), {4, 4}), trained, 1);
    Population population(ExchangeKind::none, 1);
    CHECK(population.best_trained() == nullptr);
    for (const Individual& one : {other, trained, twin}) {
        population.merge(one);
    }

    CHECK(population.best()->id == other.id);
    CHECK(population.best_trained()->id == trained.id);
    CHECK(chosen(population, std::nullopt)->id == trained.id);
    CHECK(population.evaluations() == 1);
    const auto candidates = final_candidates(population, {.candidates = 9});
    REQUIRE(candidates.size() == 2);
    CHECK(candidates[0].individual->id == other.id);
    CHECK(candidates[1].individual->id == trained.id);
}
