#include "finch/search/final_choice.hpp"

#include "finch/base/random.hpp"

#include "search/samples.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

namespace finch::search {
namespace {

using samples::evaluated;

/// Returns a repeat of the individual `of`. `number` makes its id unique among all repeats.
Individual repeat(std::uint32_t number, const Individual& of, double loss) {
    Individual individual = evaluated(1000 + number, loss);
    individual.bred_by = Operator::repeat;
    individual.parents = {of.id, Id{}};
    individual.genome = of.genome;
    return individual;
}

Population population_of(const std::vector<Individual>& all) {
    Population population(ExchangeKind::pollination, 2);
    for (const Individual& one : all) {
        population.merge(one);
    }
    return population;
}

std::vector<std::uint32_t> numbers(const std::vector<Candidate>& candidates) {
    std::vector<std::uint32_t> found;
    for (const Candidate& one : candidates) {
        found.push_back(one.individual->id.sequence());
    }
    return found;
}

}  // namespace

TEST_CASE("final_candidates: the best trained individuals of all islands, one per genome, without repeats") {
    Individual twin = evaluated(2, 0.2, 1);
    const Individual first = evaluated(1, 0.1, 1);
    twin.genome = first.genome;
    Individual reused = evaluated(5, 0.05);
    reused.reused_from = evaluated(3, 0.05).id;
    const Population population =
        population_of({first, twin, evaluated(3, 0.3), evaluated(4, 0.4, 1), reused, repeat(1, first, 0.01),
                       samples::ended(6, Outcome::diverged, Individual::not_measured), samples::bred(7)});

    CHECK(numbers(final_candidates(population, {.candidates = 2})) == std::vector<std::uint32_t>{1, 3});
    CHECK(numbers(final_candidates(population, {.candidates = 9})) == std::vector<std::uint32_t>{1, 3, 4});
}

namespace {

/// Returns 60 results of one gene: a parabola with its minimum at 0.3, with noise. The result at 0.9 is lucky.
std::vector<Individual> noisy_parabola() {
    RandomStream random(1, Purpose::test);
    std::vector<Individual> all;
    for (std::uint32_t number = 1; number <= 60; ++number) {
        const double x = number / 60.0;
        all.push_back(evaluated(number, number == 54 ? -0.5 : std::pow(x - 0.3, 2) + 0.05 * random.normal()));
        all.back().genome = {x};
    }
    return all;
}

}  // namespace

TEST_CASE("final_candidates: a model of the genes prefers good neighbourhoods to a lucky result") {
    const FinalChoice choice{6, 3, {{{"x", RealGene{0, 1}}}}};
    const Population population = population_of(noisy_parabola());
    REQUIRE(final_candidates(population, {6, 3}).front().individual->genome == Genome{0.9});

    for (const Candidate& one : final_candidates(population, choice)) {
        CHECK(std::abs(one.individual->genome[0] - 0.3) < 0.2);
    }
}

TEST_CASE("winner_of: the model weighs repeats with the results of similar genes; repeats do not change candidates") {
    std::vector<Individual> all = noisy_parabola();
    const FinalChoice choice{60, 1, {{{"x", RealGene{0, 1}}}}};
    const Population once = population_of(all);
    RandomStream random(2, Purpose::test);
    for (std::uint32_t number = 1; number <= 60; ++number) {
        const double expected = std::pow(number / 60.0 - 0.3, 2);
        all.push_back(repeat(number, all[number - 1], number == 57 ? -0.4 : expected + 0.05 * random.normal()));
    }
    const Population population = population_of(all);
    const auto candidates = final_candidates(population, choice);

    CHECK(numbers(candidates) == numbers(final_candidates(once, choice)));
    CHECK(std::abs(winner_of(candidates, choice)->individual->genome[0] - 0.3) < 0.2);
    CHECK(std::min_element(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
              return a.mean < b.mean;
          })->individual->id.sequence() == 57);
}

TEST_CASE("winner_of: repeats of a whole neighbourhood overrule what the search has found") {
    // The search has found a minimum at 0.3; the repeats all say that it is at 0.8.
    std::vector<Individual> all = noisy_parabola();
    RandomStream random(3, Purpose::test);
    for (std::uint32_t number = 1; number <= 240; ++number) {
        const Individual& of = all[(number - 1) % 60];
        all.push_back(repeat(number, of, std::pow(of.genome[0] - 0.8, 2) + 0.05 * random.normal()));
    }
    const FinalChoice choice{60, 4, {{{"x", RealGene{0, 1}}}}};
    CHECK(std::abs(winner_of(final_candidates(population_of(all), choice), choice)->individual->genome[0] - 0.7) < 0.2);
}

TEST_CASE("final_candidates: the newest of many results do not depend on the clocks of the nodes") {
    RandomStream random(4, Purpose::test);
    std::vector<Individual> all;
    for (std::uint32_t number = 1; number <= 400; ++number) {
        const double x = random.uniform();
        all.push_back(evaluated(number, std::pow(x - 0.3, 2) + 0.2 * random.normal()));
        all.back().genome = {x};
    }
    const FinalChoice choice{20, 3, {{{"x", RealGene{0, 1}}}}};
    const auto expected = numbers(final_candidates(population_of(all), choice));
    for (Individual& one : all) {
        one.finished = random.uniform();
    }
    CHECK(numbers(final_candidates(population_of(all), choice)) == expected);
}

TEST_CASE("final_candidates: mean and deviation count only the repeats that have a loss") {
    const Individual first = evaluated(1, 0.1);
    Individual failed = repeat(3, first, Individual::not_measured);
    failed.outcome = Outcome::diverged;
    Individual begun = repeat(4, first, Individual::not_measured);
    begun.outcome = Outcome::unfinished;

    const Candidate one =
        final_candidates(population_of({first, repeat(1, first, 2), repeat(2, first, 5), failed, begun}),
                         {.candidates = 1})
            .front();

    CHECK(one.mean == 3.5);
    CHECK(one.deviation == doctest::Approx(1.5 * std::sqrt(2.0)));
    CHECK(one.finished == 3);
    CHECK(one.failed == 1);
    CHECK(one.repeats.size() == 4);
    CHECK(std::isnan(final_candidates(population_of({first}), {.candidates = 1}).front().mean));
    CHECK(
        std::isnan(final_candidates(population_of({first, repeat(1, first, 2)}), {.candidates = 1}).front().deviation));
}

TEST_CASE("repeats_to_come: candidates with the fewest finished or unfinished repeats come first, ties by rank") {
    const Individual first = evaluated(1, 0.1);
    const Individual second = evaluated(2, 0.2);
    const Individual third = evaluated(3, 0.3);
    Individual begun = repeat(1, second, 0);
    begun.outcome = Outcome::unfinished;
    const auto come = repeats_to_come(
        population_of({first, second, third, repeat(2, first, 1), repeat(3, first, 1), begun}), {3, 2}, 5);

    std::vector<std::uint32_t> order;
    for (const Repeat& one : come) {
        order.push_back(one.of.sequence());
    }
    CHECK(order == std::vector<std::uint32_t>{3, 2, 3, 1, 2});
    CHECK(come.front().genome == third.genome);
    CHECK(repeats_to_come(population_of({samples::bred(1)}), {3, 2}, 5).empty());
}

TEST_CASE("winner_of: the smallest mean wins after all repeats; a candidate with a failed repeat loses to the others") {
    const Individual first = evaluated(1, 0.1);
    const Individual second = evaluated(2, 0.2);
    const FinalChoice choice{2, 2};
    std::vector<Individual> all{first, second, repeat(1, first, 0.9), repeat(2, first, 0.7), repeat(3, second, 0.6)};
    CHECK(winner_of(final_candidates(population_of(all), {.candidates = 2}), choice) == nullptr);
    CHECK(chosen(population_of(all), choice)->id == first.id);

    all.push_back(repeat(4, second, 0.8));
    const Population population = population_of(all);
    const auto candidates = final_candidates(population, {.candidates = 2});
    REQUIRE(winner_of(candidates, choice) != nullptr);
    CHECK(winner_of(candidates, choice)->individual->id == second.id);
    CHECK(chosen(population, choice)->id == all[4].id);
    CHECK(chosen(population, std::nullopt)->id == first.id);

    all.back().violation = 0.1;
    CHECK(winner_of(final_candidates(population_of(all), {.candidates = 2}), choice)->individual->id == first.id);

    all.back().outcome = Outcome::diverged;
    all.back().loss = Individual::not_measured;
    CHECK(chosen(population_of(all), choice)->id == all[3].id);
}

TEST_CASE("winner_of: if every repeat fails, there is no winner and the best individual is chosen") {
    const Individual only = evaluated(1, 0.1);
    Individual failed = repeat(1, only, Individual::not_measured);
    failed.outcome = Outcome::failed;

    const Population population = population_of({only, failed});
    CHECK(winner_of(final_candidates(population, {.candidates = 1}), {1, 1}) == nullptr);
    CHECK(chosen(population, FinalChoice{1, 1})->id == only.id);
    CHECK(chosen(population_of({}), FinalChoice{1, 1}) == nullptr);
}

TEST_CASE("a repeat counts as finished, but it belongs to no island and is never the best") {
    const Individual first = evaluated(1, 0.1);
    Individual begun = repeat(1, first, 0);
    begun.outcome = Outcome::unfinished;
    Population population = population_of({first, begun});
    CHECK(population.unfinished().size() == 1);

    population.merge(repeat(1, first, 0.01));

    CHECK(population.finished() == 2);
    CHECK(population.finished_on(0) == 1);
    CHECK(population.changes(0).size() == 1);
    CHECK(population.active(0) == 1);
    CHECK(population.best(0, 5).size() == 1);
    CHECK(population.best()->id == first.id);
    CHECK(population.unfinished().empty());
}

TEST_CASE("chosen: the choice does not depend on the order of arrival or on duplicate records") {
    std::vector<Individual> all;
    for (std::uint32_t number = 1; number <= 30; ++number) {
        all.push_back(evaluated(number, 0.01 * (number * 7 % 13), static_cast<std::int32_t>(number % 2)));
        all.back().genome = {static_cast<double>(number % 11), 0};
    }
    const FinalChoice choice{4, 3, {{{"x", IntGene{0, 10}}, {"y", RealGene{0, 1}}}}};
    std::uint32_t number = 0;
    const Population evaluated_once = population_of(all);
    for (const Candidate& one : final_candidates(evaluated_once, choice)) {
        for (int i = 0; i < 3; ++i, ++number) {
            all.push_back(repeat(number, *one.individual, 0.01 * (number * 5 % 7)));
        }
    }
    const Id expected = chosen(population_of(all), choice)->id;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        RandomStream random(seed, Purpose::test);
        Population population(ExchangeKind::migration, 3);
        for (const std::uint32_t i : random.permutation(static_cast<std::uint32_t>(all.size()))) {
            population.merge(all[i]);
            population.merge(all[random.below(all.size())]);
        }
        CHECK(chosen(population, choice)->id == expected);
    }
}

}  // namespace finch::search
