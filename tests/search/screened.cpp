// Breeding by a model: the points that it begins with and knows, and that it finds what it is made to find.
#include "search/propagators/screened.hpp"

#include "finch/search/propagator.hpp"

#include "simulated_search.hpp"

#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <vector>

using namespace finch;
using namespace finch::search;

TEST_CASE("screened breeding is far better than random search and the genetic chain at 60 and 200 evaluations") {
    for (const std::int64_t evaluations : {60, 200}) {
        CAPTURE(evaluations);
        const double screened = median_best(ScreenedOptions{}, evaluations, 4);
        CHECK(screened < 0.7 * median_best(RandomSearchOptions{}, evaluations, 4));
        CHECK(screened < median_best(GeneticOptions{.population = 8}, evaluations, 4));
    }
}

TEST_CASE("the first points of screened breeding are a latin hypercube") {
    const Space space = mixed_space();
    const ScreenedState state({.space = space, .seed = 5, .evaluations = 1000});
    const std::size_t count = state.first_points();
    CHECK(count == 2 * space.size());
    for (std::size_t gene = 0; gene < space.size(); ++gene) {
        std::set<int> strata;
        for (std::size_t number = 0; number < count; ++number) {
            strata.insert(static_cast<int>(state.first_point(number)[gene] * static_cast<double>(count)));
        }
        CHECK(strata.size() == count);
    }
}

TEST_CASE("each island begins with points of its own, and the first one as a run of one island") {
    const Space space = mixed_space();
    for (const PropagatorOptions& options :
         {PropagatorOptions{ScreenedOptions{}}, PropagatorOptions{AutomaticOptions{}}}) {
        CAPTURE(options.index());
        const Population population(ExchangeKind::none, 3);
        std::vector<std::set<Genome>> begun(3);
        for (int island = 0; island < 3; ++island) {
            const auto propagator = make_propagator(options, space, 5);
            for (std::uint64_t births = 0; births < 8; ++births) {
                RandomStream random(1, Purpose::breeding, births);
                const Stage stage{.evaluations = 1000, .workers = 1, .births = births};
                begun[static_cast<std::size_t>(island)].insert(
                    propagator->breed(population, island, stage, random).genome);
            }
        }
        std::set<Genome> all;
        for (const std::set<Genome>& genomes : begun) {
            all.insert(genomes.begin(), genomes.end());
        }
        CHECK(all.size() == 24);
        const ScreenedState alone({.space = space, .seed = 5, .evaluations = 1000});
        CHECK(begun[0].contains(canonical(space, from_unit(space, alone.first_point(3)))));
    }
}

TEST_CASE("screened breeding repeats no genome, known or in training, while there are others") {
    const Space space{{{"a", ChoiceGene{{"x", "y", "z"}}}, {"b", IntGene{1, 12}}}};
    const Found found = search_for(
        ScreenedOptions{}, space, [](const Genome& g) { return g[0] + g[1]; }, 30, 4, 1);
    std::map<Operator, std::set<Genome>> genomes;
    std::map<Operator, std::size_t> bred;
    for (const Individual& individual : found.all) {
        genomes[individual.bred_by].insert(individual.genome);
        ++bred[individual.bred_by];
    }
    CHECK(bred[Operator::model_screened] > 10);
    CHECK(genomes[Operator::model_screened].size() == bred[Operator::model_screened]);
}

TEST_CASE("models propose nothing that breaks a constraint, although one in forty genomes obeys it") {
    const Space space = reals(4, 0, 1);
    const std::vector<Constraint> constraints{{"x0 + x1 <= 0.3", space}, {"x2 <= x3 / 2", space}};
    for (const auto& [options, by_model] : {std::pair{PropagatorOptions{ScreenedOptions{}}, Operator::model_screened},
                                            std::pair{PropagatorOptions{TpeOptions{}}, Operator::parzen}}) {
        CAPTURE(options.index());
        // The optimum without constraints is where they forbid it.
        Found found = search_for(options, space, sphere, 80, 4, 1, 0, constraints);
        const auto by_chance = std::count_if(found.all.begin(), found.all.end(), [&](const Individual& individual) {
            return individual.bred_by != by_model;
        });
        CHECK(by_chance < 50);
        CHECK(found.ruled_out[by_model] == 0);
        CHECK(found.ruled_out[Operator::random] > by_chance);  // the region is a narrow one
    }
}

TEST_CASE("for the model all that failed are equally bad, and worse than all others") {
    ScreenedState state(
        {.space = {{{"a", RealGene{0, 1}}}}, .seed = 1, .options = {.most_points = 20}, .evaluations = 100});
    const auto take = [&](std::uint32_t number, double loss) {
        Individual individual;
        individual.id = Id::make(0, 0, number);
        individual.genome = {number / 100.0};
        individual.outcome = std::isfinite(loss) ? Outcome::evaluated : Outcome::diverged;
        individual.loss = loss;
        state.take(individual, true);
    };
    for (std::uint32_t i = 1; i <= 8; ++i) {
        take(i, i <= 3 ? 1.0 / i : Individual::not_measured);
    }
    const GlobalModel::Data data = state.data();
    REQUIRE(data.values.size() == 8);
    CHECK(data.points(0, 0) == doctest::Approx(0.03));  // the best first
    CHECK((data.values[0] < data.values[1] && data.values[1] < data.values[2] && data.values[2] < data.values[3]));
    for (Eigen::Index i = 4; i < 8; ++i) {
        CHECK(data.values[i] == data.values[3]);
    }

    for (std::uint32_t i = 9; i <= 60; ++i) {
        take(i, i);
    }
    const GlobalModel::Data most = state.data();
    CHECK(most.values.size() == 20);
    CHECK(most.points.minCoeff() == doctest::Approx(0.01));  // of the best half
    CHECK(most.points.maxCoeff() == doctest::Approx(0.60));  // the newest
}

TEST_CASE("the model knows higher rungs first, and lower ones only where fewer than ten stand above") {
    ScreenedState state(
        {.space = {{{"a", RealGene{0, 1}}}}, .seed = 1, .options = {.most_points = 100}, .evaluations = 100});
    std::uint32_t number = 0;
    const auto take = [&](Outcome outcome, std::int32_t rung, double loss) {
        Individual individual;
        individual.id = Id::make(0, 0, ++number);
        individual.genome = {number / 100.0};
        individual.outcome = outcome;
        individual.pruning.edit().rung = rung;
        individual.loss = loss;
        state.take(individual, true);
    };
    const auto known = [&] {
        const GlobalModel::Data data = state.data();
        std::vector<int> numbers;
        for (Eigen::Index i = 0; i < data.points.cols(); ++i) {
            numbers.push_back(static_cast<int>(std::lround(100 * data.points(0, i))));
            CHECK((i == 0 || data.values[i - 1] < data.values[i]));
        }
        return numbers;
    };
    const auto take_some = [&](int count, Outcome outcome, std::int32_t rung, double loss) {
        for (int i = 0; i < count; ++i) {
            take(outcome, rung, loss + i);
        }
    };

    take_some(4, Outcome::pruned, 1, 0.1);
    take_some(3, Outcome::pruned, 2, 0.5);
    take_some(2, Outcome::evaluated, 3, 0.9);
    take(Outcome::diverged, 0, Individual::not_measured);
    CHECK(known() == std::vector{8, 9, 5, 6, 7, 1, 2, 3, 4, 10});  // nine have a loss
    take_some(5, Outcome::pruned, 2, 0.6);
    CHECK(known() == std::vector{8, 9, 5, 11, 6, 12, 7, 13, 14, 15, 10});
    take_some(8, Outcome::evaluated, 3, 0.95);
    CHECK(known() == std::vector{8, 16, 9, 17, 18, 19, 20, 21, 22, 23, 10});
}
