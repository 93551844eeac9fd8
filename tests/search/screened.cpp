// Breeding by a model: its first points, the data that it uses, and its results on test functions.
#include "search/propagators/screened.hpp"

#include "finch/search/propagator.hpp"

#include "search/propagators/acquisition.hpp"
#include "simulated_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <vector>

using namespace finch;
using namespace finch::search;

TEST_CASE("screened is much better than random search and genetic after 60 and 200 evaluations") {
    for (const std::int64_t evaluations : {60, 200}) {
        CAPTURE(evaluations);
        const double screened = median_best(ScreenedOptions{}, evaluations, 4);
        CHECK(screened < 0.7 * median_best(RandomSearchOptions{}, evaluations, 4));
        CHECK(screened < median_best(GeneticOptions{.population = 8}, evaluations, 4));
    }
}

TEST_CASE("screened: the first points are a Latin hypercube") {
    const Space space = mixed_space();
    const ScreenedState state({.space = space, .seed = 5, .evaluations = 1000});
    const std::size_t count = ScreenedState::first_points({}, space, 0);
    CHECK(count == 2 * space.size());
    for (std::size_t gene = 0; gene < space.size(); ++gene) {
        std::set<int> strata;
        for (std::size_t number = 0; number < count; ++number) {
            strata.insert(static_cast<int>(state.first_point(number)[gene] * static_cast<double>(count)));
        }
        CHECK(strata.size() == count);
    }
}

TEST_CASE("screened and auto: each island has its own first points, and island 0 the same as a single island") {
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

TEST_CASE("screened: proposes no genome that is known or in training, while other genomes are left") {
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

TEST_CASE("screened: the model proposes only genomes that obey the constraints") {
    const Space space = reals(4, 0, 1);
    const std::vector<Constraint> constraints{{"x0 + x1 <= 0.3", space}, {"x2 <= x3 / 2", space}};
    // The constraints exclude the optimum of the unconstrained problem.
    Found found = search_for(ScreenedOptions{}, space, sphere, 80, 4, 1, 0, constraints);
    const auto by_chance = std::count_if(found.all.begin(), found.all.end(), [](const Individual& individual) {
        return individual.bred_by != Operator::model_screened;
    });
    CHECK(by_chance < 50);
    CHECK(found.ruled_out[Operator::model_screened] == 0);
    CHECK(found.ruled_out[Operator::random] > by_chance);  // few random genomes obey the constraints
}

namespace {

/// Returns a space with two optimizers. Each optimizer has its own numeric genes, and both use `rate`.
Space branches() {
    return {{{"optimizer", ChoiceGene{{"sgd", "adam"}}},
             {"rate", RealGene{1e-4, 1, Scale::log}},
             {"momentum", RealGene{0, 1}, {{0, {0}}}},
             {"beta", RealGene{0, 1}, {{0, {1}}}},
             {"epsilon", RealGene{1e-9, 1e-3, Scale::log}, {{0, {1}}}},
             {"activation", ChoiceGene{{"relu", "tanh", "gelu"}}}}};
}
/// The minimum is 0: adam, rate 0.01, beta 0.7, epsilon 1e-6, gelu. The minimum with sgd is 0.02, at a rate of 0.3.
double branch_loss(const Genome& g) {
    const double rate = std::log10(g[1]) + 2;
    const double activation = 0.2 * std::abs(g[5] - 2);
    if (g[0] == 0) {
        return 0.02 + activation + std::pow(rate - 1.5, 2) + std::pow(g[2] - 0.5 + 0.3 * rate, 2);
    }
    const double epsilon = std::log10(g[4]) + 6;
    return activation + rate * rate + 5 * std::pow(g[3] - 0.7 + 0.2 * rate, 2) + 0.1 * std::pow(epsilon - rate, 2);
}

}  // namespace

TEST_CASE("screened: optimizes the numbers of one branch exactly, independent of the genes of the other branch") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        CAPTURE(seed);
        const double best = search_for(ScreenedOptions{}, branches(), branch_loss, 120, 4, seed).best;
        CHECK((best < 0.02 ? best : best - 0.02) < 1e-4);
    }
}

TEST_CASE("screened: finds an optimum on the border of a constraint") {
    const Space space = reals(3, 0, 1);
    const std::vector<Constraint> constraints{{"x0 + x1 <= 0.8", space}};
    const auto best = [&](std::uint64_t seed) {  // the minimum is at 0.4, 0.4, 1
        return search_for(ScreenedOptions{}, space, sphere, 80, 4, seed, 0, constraints).best - 0.72;
    };
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        CAPTURE(seed);
        CHECK(best(seed) < 1e-3);
    }
}

TEST_CASE("optimize: changes numbers and choices, obeys constraints and returns no known genome") {
    const Space space{{{"x", IntGene{0, 10}}, {"kind", ChoiceGene{{"a", "b", "c"}}}}};
    const auto genome_at = [&](const Eigen::VectorXd& point, Eigen::Index) {
        return from_unit(space, {point.begin(), point.end()});
    };
    const auto point_of = [&](const Genome& genome) -> Eigen::VectorXd {
        return Eigen::Vector2d(to_unit(space.genes[0], genome[0]), to_unit(space.genes[1], genome[1]));
    };
    const Eigen::VectorXd best = Eigen::Vector2d(to_unit(space.genes[0], 7), to_unit(space.genes[1], 2));
    const Acquisition acquisition{.bound =
                                      [&](const Eigen::VectorXd& point, Eigen::VectorXd& gradient) {
                                          gradient = Eigen::Vector2d(2 * (point[0] - best[0]), 0);
                                          return std::pow(point[0] - best[0], 2) + std::abs(point[1] - best[1]);
                                      },
                                  .box = {Eigen::Vector2d::Zero(), Eigen::Vector2d::Ones()},
                                  .choices = {{1, &space.genes[1]}},
                                  .inside = [](const Eigen::VectorXd& point) { return point; },
                                  .genome_at = genome_at,
                                  .point_of = point_of};
    Eigen::MatrixXd starts(2, 2);
    starts.col(0) = Eigen::Vector2d(0.1, to_unit(space.genes[1], 0));
    starts.col(1) = Eigen::Vector2d(0.2, to_unit(space.genes[1], 1));
    const Eigen::VectorXd bounds = Eigen::Vector2d(2, 1);
    const auto found = [&](const std::set<Genome>& known, std::span<const Constraint> constraints) {
        return optimize(acquisition, starts, bounds, {space, known, {}, constraints});
    };
    const auto optimum = found({}, {});
    REQUIRE(optimum);
    CHECK(optimum->genome == Genome{7, 2});

    const std::vector<Constraint> constraints{{"x <= 5", space}};
    const auto border = found({}, constraints);
    REQUIRE(border);
    CHECK(border->genome[0] <= 5);
    CHECK(border->genome[0] > 3);
    CHECK(border->genome[1] == 2);

    const auto allowed = found({}, std::vector<Constraint>{{"kind != c", space}});
    REQUIRE(allowed);
    CHECK(allowed->genome == Genome{7, 1});

    const auto second = found({{7, 2}}, {});  // the known option is not a valid step
    REQUIRE(second);
    CHECK(second->genome == Genome{7, 1});
    std::set<Genome> all;
    for (int x = 0; x <= 10; ++x) {
        for (int kind = 0; kind < 3; ++kind) {
            all.insert({static_cast<double>(x), static_cast<double>(kind)});
        }
    }
    CHECK_FALSE(found(all, {}));
}

TEST_CASE("screened: with few results in many genes, the global model follows gradients") {
    std::vector<double> best;
    for (std::uint64_t seed = 1; seed <= 11; ++seed) {
        best.push_back(search_for(ScreenedOptions{}, reals(20), sphere, 30, 4, seed).best);
    }
    std::nth_element(best.begin(), best.begin() + 5, best.end());
    CHECK(best[5] < 65);  // medians over 21 seeds: 53, quartiles 42 and 57; without gradients 86, quartiles 68 and 93
}

TEST_CASE("screened: a resumed leader breeds the same genome as a leader that continued without a restart") {
    for (const auto& [space, loss] :
         {std::pair{reals(3), Loss(rosenbrock)}, std::pair{branches(), Loss(branch_loss)}}) {
        CAPTURE(space.size());
        const Found found = search_for(ScreenedOptions{}, space, loss, 90, 5, 3);
        for (std::size_t known = 20; known <= 85; ++known) {
            Population population(ExchangeKind::none, 1);
            for (std::size_t i = known; i-- > 0;) {
                population.merge(found.all[i]);
            }
            for (std::size_t i = known; i < known + 4; ++i) {  // the individuals that were in training at that time
                Individual individual = found.all[i];
                individual.outcome = {};
                individual.finished = 0;
                population.merge(std::move(individual));
            }
            const auto born = static_cast<std::uint64_t>(known) + 4;
            const Stage stage{.budget_used = static_cast<double>(known) / 90,
                              .evaluations = 90,
                              .workers = 5,
                              .births = born,
                              .constraints = {}};
            RandomStream random(3, Purpose::breeding, Id::make(0, 0, static_cast<std::uint32_t>(born + 1)).value, 0);
            const auto resumed = make_propagator(ScreenedOptions{}, space, 3);
            CHECK(resumed->breed(population, 0, stage, random).genome == found.all[born].genome);
        }
    }
}

TEST_CASE("screened: equal losses get equal model values, and failures get one value, worse than all losses") {
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
    CHECK(data.points(0, 0) == doctest::Approx(0.03));  // the best result is first
    CHECK((data.values(0, 0) < data.values(0, 1) && data.values(0, 1) < data.values(0, 2) &&
           data.values(0, 2) < data.values(0, 3)));
    for (Eigen::Index i = 4; i < 8; ++i) {
        CHECK(data.values(0, i) == data.values(0, 3));
    }

    take(9, 1.0 / 2);  // the same loss as the second best
    const GlobalModel::Data equal = state.data();
    CHECK(equal.values(0, 1) == equal.values(0, 2));
    CHECK(equal.values(0, 2) < equal.values(0, 3));

    for (std::uint32_t i = 10; i <= 60; ++i) {
        take(i, i);
    }
    const GlobalModel::Data most = state.data();
    CHECK(most.values.size() == 20);
    CHECK(most.points.minCoeff() == doctest::Approx(0.01));  // a result of the best half
    CHECK(most.points.maxCoeff() == doctest::Approx(0.60));  // the newest result
}

TEST_CASE("screened: the model uses lower rungs only if fewer than ten results are above them") {
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
            CHECK((i == 0 || data.values(0, i - 1) < data.values(0, i)));
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
    CHECK(known() == std::vector{8, 9, 5, 6, 7, 1, 2, 3, 4, 10});  // nine results have a loss
    take_some(5, Outcome::pruned, 2, 0.6);
    CHECK(known() == std::vector{8, 9, 5, 11, 6, 12, 7, 13, 14, 15, 10});
    take_some(8, Outcome::evaluated, 3, 0.95);
    CHECK(known() == std::vector{8, 16, 9, 17, 18, 19, 20, 21, 22, 23, 10});
}
