// The genetic operators on one coordinate, and what the genetic propagator does with them.
#include "search/propagators/variation.hpp"

#include "finch/base/error.hpp"
#include "finch/search/propagator.hpp"

#include "search/fit.hpp"
#include "search/samples.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <map>
#include <set>

using namespace finch;
using namespace finch::search;
using namespace finch::search::samples;

namespace {

constexpr int variations = 20000;

/// The distance from a distribution: `cumulative` makes its samples uniform.
double misses(const std::function<double(RandomStream&)>& draw, const std::function<double(double)>& cumulative) {
    RandomStream random(4, Purpose::test);
    std::vector<double> shares;
    for (int i = 0; i < variations; ++i) {
        const double u = draw(random);
        CHECK((0 <= u && u <= 1));
        shares.push_back(cumulative(u));
    }
    return distance_from_uniform(shares);
}

double normal(double z) {
    return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

const GeneticOptions two_equal{.population = 2, .crossover = 1, .random = 0};

std::vector<Offspring> bred_from(const std::vector<Genome>& parents, const GeneticOptions& options, const Space& space,
                                 int count = variations) {
    const auto propagator = make_propagator(options, space, 1);
    const Population population = of_genomes(parents);
    std::vector<Offspring> offspring;
    for (int i = 0; i < count; ++i) {
        RandomStream random(1, Purpose::breeding, static_cast<std::uint64_t>(i));
        offspring.push_back(propagator->breed(population, 0, {}, random));
        CHECK(space.contains(offspring.back().genome));
        CHECK(offspring.back().genome == canonical(space, offspring.back().genome));
    }
    return offspring;
}

GeneticOptions with(MutationOperator operation) {
    GeneticOptions options = two_equal;
    options.mutation_operator = operation;
    return options;
}

GeneticOptions with(CrossoverOperator operation, double crossover = 1) {
    GeneticOptions options = with(MutationOperator{PointMutation{.rate = 0}});
    options.crossover = crossover;
    options.crossover_operator = operation;
    return options;
}

}  // namespace

TEST_CASE("simulated binary crossover: the spread follows its density, cut off at the bound") {
    for (const double eta : {2.0, 15.0}) {
        for (const auto& [near, far] : {std::pair{0.4, 0.6}, {0.9, 0.2}, {0.01, 0.5}, {1.0, 0.7}, {0.0, 1.0}}) {
            CAPTURE(near);
            const auto up_to = [eta](double spread) {
                return spread <= 1 ? 0.5 * std::pow(spread, eta + 1) : 1 - 0.5 * std::pow(spread, -(eta + 1));
            };
            const double middle = (near + far) / 2;
            const double half = std::abs(near - far) / 2;
            const double most = (near < far ? middle : 1 - middle) / half;
            const auto draw = [&](RandomStream& random) { return simulated_binary(near, far, eta, random); };
            const auto share = [&](double u) {
                const double spread = (near < far ? middle - u : u - middle) / half;
                CHECK(spread >= -1e-12);
                return up_to(std::max(0.0, spread)) / up_to(most);
            };

            CHECK(misses(draw, share) < 1);
        }
    }
    RandomStream random(1, Purpose::test);
    CHECK(simulated_binary(0.3, 0.3, 15, random) == 0.3);
}

TEST_CASE("blend crossover: uniform over the parents' interval, widened and cut off at the bounds") {
    for (const auto& [first, second] : {std::pair{0.4, 0.6}, {0.9, 0.6}, {0.1, 0.0}}) {
        const double low = std::max(0.0, std::min(first, second) - 0.5 * std::abs(first - second));
        const double high = std::min(1.0, std::max(first, second) + 0.5 * std::abs(first - second));

        CHECK(misses([&](RandomStream& random) { return blend(first, second, 0.5, random); },
                     [&](double u) { return (u - low) / (high - low); }) < 1);
    }
}

TEST_CASE("polynomial mutation: the change follows its density, cut off at the bounds") {
    for (const double eta : {1.0, 20.0}) {
        for (const double centre : {0.5, 0.03, 0.0, 1.0}) {
            CAPTURE(centre);
            const auto up_to = [&](double change) {
                const double half = 0.5 * (1 - std::pow(1 - std::abs(change), eta + 1));
                return change < 0 ? 0.5 - half : 0.5 + half;
            };
            const double least = up_to(-centre);
            const double all = up_to(1 - centre) - least;

            CHECK(misses([&](RandomStream& random) { return polynomial(centre, eta, random); },
                         [&](double u) { return (up_to(u - centre) - least) / all; }) < 1);
        }
    }
}

TEST_CASE("a truncated normal is one, with nothing at the bounds") {
    for (const double centre : {0.5, 0.02, 0.0, 1.0}) {
        const double least = normal(-centre / 0.1);
        const double all = normal((1 - centre) / 0.1) - least;

        CHECK(misses([&](RandomStream& random) { return normal_in_unit(centre, 0.1, random); },
                     [&](double u) { return (normal((u - centre) / 0.1) - least) / all; }) < 1);
    }
}

TEST_CASE("genetic: a tournament and a truncation choose the parents that they should") {
    const Space space{{{"x", RealGene{0, 1}}}};
    const std::vector<Genome> genomes(8, Genome{0.5});
    GeneticOptions options = two_equal;
    options.population = 8;
    const auto first_parents = [&](Selection selection) {
        options.selection = selection;
        std::map<double, int> counts;
        for (const Offspring& one : bred_from(genomes, options, space)) {
            CHECK(one.parents[0] != one.parents[1]);
            ++counts[one.parents[0].sequence()];
        }
        return counts;
    };
    std::map<double, double> best_of_three;
    for (int place = 1; place <= 8; ++place) {
        best_of_three[place] = std::pow((9 - place) / 8.0, 3) - std::pow((8 - place) / 8.0, 3);
    }
    std::map<double, double> each;
    for (int place = 1; place <= 8; ++place) {
        each[place] = 1 / 8.0;
    }

    CHECK(misfit(first_parents(UniformBest{}), each) < 1);
    CHECK(misfit(first_parents(Tournament{1}), each) < 1);
    CHECK(misfit(first_parents(Tournament{3}), best_of_three) < 1);
    CHECK(misfit(first_parents(Truncation{0.5}), {{1, 0.25}, {2, 0.25}, {3, 0.25}, {4, 0.25}}) < 1);
    CHECK(misfit(first_parents(Truncation{0.01}), {{1, 0.5}, {2, 0.5}}) < 1);
}

TEST_CASE("genetic: sbx crosses each gene with its rate, near the first parent, in the logarithm of a log gene") {
    const Space space{
        {{"rate", RealGene{1e-4, 1, Scale::log}}, {"word", ChoiceGene{{"a", "b", "c"}}}, {"n", IntGene{0, 100}}}};
    const Genome low{1e-3, 0, 30};
    const Genome high{1e-1, 2, 60};
    int crossed = 0;
    int together = 0;
    std::vector<double> spreads;
    for (const Offspring& one :
         bred_from({low, high}, with(CrossoverOperator{SimulatedBinaryCrossover{2, 0.5}}), space)) {
        const bool is_low_first = one.parents[0].sequence() == 1;
        const Genome& first = is_low_first ? low : high;
        CHECK(one.genome[1] == first[1]);
        CHECK((is_low_first ? one.genome[2] <= 45 : one.genome[2] >= 45));
        if (one.genome[0] != first[0]) {
            ++crossed;
            together += one.genome[2] != first[2] ? 1 : 0;
            const double spread = std::abs(std::log10(one.genome[0]) + 2);  // the parents are 2 apart: β
            const auto up_to = [](double b) { return b <= 1 ? 0.5 * b * b * b : 1 - 0.5 / (b * b * b); };
            spreads.push_back(up_to(spread) / up_to(2));
        }
    }

    CHECK(crossed == doctest::Approx(variations * 0.5).epsilon(0.03));
    CHECK(together < crossed * 0.52);
    CHECK(together > crossed * 0.4);  // a whole number may come out where it was
    CHECK(distance_from_uniform(spreads) < 1);
}

TEST_CASE("genetic: blend reaches whole numbers, steps and ordered choices between and beyond, each as often") {
    const Space space{
        {{"n", IntGene{0, 9}}, {"s", RealGene{0, 1, Scale::linear, 0.25}}, {"w", ChoiceGene{{"a", "b", "c"}, true}}}};
    std::map<double, int> whole;
    std::map<double, int> step;
    std::map<double, int> word;
    for (const Offspring& one :
         bred_from({{4, 0, 0}, {6, 1, 2}}, with(CrossoverOperator{BlendCrossover{0.5}}), space)) {
        ++whole[one.genome[0]];
        ++step[one.genome[1]];
        ++word[one.genome[2]];
    }

    // From 0.45 and 0.65 to [0.35, 0.75]; from 0.1 and 0.9 to all.
    CHECK(misfit(whole, {{3, 0.125}, {4, 0.25}, {5, 0.25}, {6, 0.25}, {7, 0.125}}) < 1);
    CHECK(misfit(step, {{0, 0.2}, {0.25, 0.2}, {0.5, 0.2}, {0.75, 0.2}, {1, 0.2}}) < 1);
    CHECK(misfit(word, {{0, 1 / 3.0}, {1, 1 / 3.0}, {2, 1 / 3.0}}) < 1);
}

TEST_CASE("genetic: each mutation changes each active gene with its rate, and one on average without one") {
    const Space space{{{"x", RealGene{-1, 1}},
                       {"n", IntGene{1, 10000, Scale::log}},
                       {"word", ChoiceGene{{"a", "b", "c"}}},
                       {"size", ChoiceGene{{"s", "m", "l"}, true}},
                       {"fixed", IntGene{2, 2}},
                       {"off", RealGene{0, 1}, {{4, {3}}}}}};
    const Genome parent{1, 10000, 1, 1, 2, 0};
    for (const auto& rate : {std::optional<double>(), std::optional(0.25), std::optional(0.6)}) {
        for (const MutationOperator& operation :
             {MutationOperator{GaussianMutation{rate, 0.01}}, MutationOperator{PolynomialMutation{rate, 100}}}) {
            std::vector<int> changed(space.size());
            std::map<double, int> words;
            for (const Offspring& one : bred_from({parent, parent}, with(operation), space)) {
                for (std::size_t i = 0; i < space.size(); ++i) {
                    changed[i] += one.genome[i] != parent[i] ? 1 : 0;
                }
                ++words[one.genome[2]];
            }
            const double expected = rate.value_or(0.25);

            for (const std::size_t gene : {0U, 1U, 2U, 3U}) {
                CHECK(misfit({{0, variations - changed[gene]}, {1, changed[gene]}},
                             {{0, 1 - expected}, {1, expected}}) < 1);
            }
            CHECK(changed[4] + changed[5] == 0);
            CHECK(misfit(words, {{0, expected / 2}, {1, 1 - expected}, {2, expected / 2}}) < 1);
        }
    }
}

TEST_CASE("genetic: a mutated value leaves a bound, and few stay at it") {
    const Space space{{{"x", RealGene{1, 3}}, {"n", IntGene{0, 4}}}};
    for (const MutationOperator& operation :
         {MutationOperator{GaussianMutation{1.0, 0.1}}, MutationOperator{PolynomialMutation{1.0, 20}}}) {
        std::set<double> values;
        for (const Offspring& one : bred_from({{3, 4}, {3, 4}}, with(operation), space, 2000)) {
            values.insert(one.genome[0]);
            CHECK(one.genome[1] != 4);
        }
        CHECK(values.size() == 2000);
    }
}

TEST_CASE("genetic: point mutation draws each gene anew, and those that come to be active") {
    const Space space{{{"on", IntGene{0, 1}}, {"rate", RealGene{0, 1, Scale::linear, 0.25}, {{0, {1}}}}}};
    std::map<double, int> rates;
    for (const Offspring& one : bred_from({{0, 0}, {0, 0}}, with(MutationOperator{PointMutation{1.0}}), space)) {
        ++rates[one.genome[0] == 1 ? one.genome[1] : -1];
    }

    CHECK(misfit(rates, {{-1, 0.5}, {0, 0.1}, {0.25, 0.1}, {0.5, 0.1}, {0.75, 0.1}, {1, 0.1}}) < 1);
}

TEST_CASE("genetic: operators out of their bounds are refused") {
    const auto refused = [](const GeneticOptions& options) {
        CHECK_THROWS_AS((void)make_propagator(options, Space{}, 1), ConfigError);
    };
    const double nan = std::nan("");

    refused({.selection = Tournament{0}});
    refused({.selection = Truncation{0}});
    refused({.selection = Truncation{nan}});
    refused({.crossover_operator = SimulatedBinaryCrossover{-1, 0.5}});
    refused({.crossover_operator = SimulatedBinaryCrossover{15, nan}});
    refused({.crossover_operator = BlendCrossover{nan}});
    refused({.mutation_operator = PointMutation{1.1}});
    refused({.mutation_operator = GaussianMutation{0.5, 0}});
    refused({.mutation_operator = PolynomialMutation{nan, 20}});
}
