#include "finch/search/propagator.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "search/samples.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <map>
#include <set>

using namespace finch;
using namespace finch::search;
using namespace finch::search::samples;

namespace {

constexpr int draws = 10000;
const GeneticOptions crossover_only{2, 0.7, 0, 0, 0};

std::vector<Offspring> breed(const PropagatorOptions& options, const Space& space, const Population& population,
                             int count = draws) {
    const auto propagator = make_propagator(options, space, 1);
    std::vector<Offspring> offspring;
    for (int i = 0; i < count; ++i) {
        RandomStream random(1, Purpose::breeding, static_cast<std::uint64_t>(i));
        offspring.push_back(propagator->breed(population, 0, {}, random));
        REQUIRE(space.contains(offspring.back().genome));
    }
    return offspring;
}

/// Returns the fraction of `offspring` for which `claim` is true.
template <class Claim>
double share(const std::vector<Offspring>& offspring, const Claim& claim) {
    return static_cast<double>(std::count_if(offspring.begin(), offspring.end(), claim)) /
           static_cast<double>(offspring.size());
}

Space integers(std::size_t count, std::int64_t high) {
    Space space;
    for (std::size_t i = 0; i < count; ++i) {
        space.genes.push_back({fmt::format("n{}", i), IntGene{0, high}});
    }
    return space;
}

Space one_real(double low, double high, Scale scale = Scale::linear) {
    return {{{"x", RealGene{low, high, scale}}}};
}

/// Returns the mean and the standard deviation of f(first gene).
template <class Function>
std::pair<double, double> moments(const std::vector<Offspring>& offspring, const Function& f) {
    double sum = 0;
    double squares = 0;
    for (const Offspring& one : offspring) {
        sum += f(one.genome[0]);
        squares += f(one.genome[0]) * f(one.genome[0]);
    }
    const double mean = sum / static_cast<double>(offspring.size());
    return {mean, std::sqrt(squares / static_cast<double>(offspring.size()) - mean * mean)};
}

}  // namespace

TEST_CASE("genetic: breeds random genomes until `population` individuals are active") {
    const Space space = integers(4, 1000);
    const Genome genome{1, 2, 3, 4};
    GeneticOptions options = crossover_only;
    options.population = 3;

    for (const Offspring& one : breed(options, space, of_genomes({genome, genome}), 200)) {
        CHECK(one.bred_by == Operator::random);
        CHECK(one.parents == std::array<Id, 2>{});
        CHECK(one.genome != genome);
    }
    for (const Offspring& one : breed(options, space, of_genomes({genome, genome, genome}), 200)) {
        CHECK(one.bred_by == Operator::crossover);
        CHECK(one.genome == genome);
    }
}

TEST_CASE("genetic: a failed individual does not count towards `population`") {
    Population population = of_genomes({{1}});
    population.merge(ended(9, Outcome::failed, 0));

    const auto offspring = breed(crossover_only, integers(1, 9), population, 50);

    CHECK(share(offspring, [](const Offspring& one) { return one.bred_by == Operator::random; }) == 1);
}

TEST_CASE("genetic: each gene comes from the first parent with probability `crossover`, independently") {
    const auto offspring = breed(crossover_only, integers(2, 1), of_genomes({{0, 0}, {1, 1}}));
    const Id zeros = bred(1).id;
    const auto is_from_first = [zeros](const Offspring& one, std::size_t gene) {
        return (one.parents[0] == zeros) == (one.genome[gene] == 0);
    };

    CHECK(share(offspring, [&](const auto& one) { return is_from_first(one, 0); }) ==
          doctest::Approx(0.7).epsilon(0.03));
    CHECK(share(offspring, [&](const auto& one) { return is_from_first(one, 1); }) ==
          doctest::Approx(0.7).epsilon(0.03));
    CHECK(share(offspring, [&](const auto& one) { return is_from_first(one, 0) && is_from_first(one, 1); }) ==
          doctest::Approx(0.49).epsilon(0.05));
    CHECK(share(offspring, [zeros](const auto& one) { return one.parents[0] == zeros; }) ==
          doctest::Approx(0.5).epsilon(0.05));
}

TEST_CASE("genetic: the two parents differ, and each pair of the best `population` is equally likely") {
    GeneticOptions options = crossover_only;
    options.population = 4;
    const std::vector<Genome> genomes(6, Genome{0});
    std::map<std::pair<Id, Id>, int> counts;

    for (const Offspring& one : breed(options, integers(1, 1), of_genomes(genomes))) {
        CHECK(one.parents[0] != one.parents[1]);
        CHECK(one.parents[0] <= bred(4).id);
        CHECK(one.parents[1] <= bred(4).id);
        ++counts[{one.parents[0], one.parents[1]}];
    }

    CHECK(counts.size() == 12);
    for (const auto& [pair, count] : counts) {
        CHECK(count == doctest::Approx(draws / 12.0).epsilon(0.15));  // 4.5 standard deviations
    }
}

TEST_CASE("genetic: with probability `mutation`, exactly one gene is drawn again, each equally often") {
    GeneticOptions options = crossover_only;
    options.mutation = 0.4;
    const Genome parent{1, 2, 3};
    const auto offspring = breed(options, integers(3, 1'000'000), of_genomes({parent, parent}));
    const auto changed = [&](const Offspring& one) {
        std::vector<std::size_t> genes;
        for (std::size_t i = 0; i < 3; ++i) {
            if (one.genome[i] != parent[i]) {
                genes.push_back(i);
            }
        }
        return genes;
    };

    CHECK(share(offspring, [&](const auto& one) { return changed(one).size() == 1; }) ==
          doctest::Approx(0.4).epsilon(0.05));
    CHECK(share(offspring, [&](const auto& one) { return changed(one).size() > 1; }) == 0);
    for (const std::size_t gene : {0U, 1U, 2U}) {
        CHECK(share(offspring, [&](const auto& one) { return changed(one) == std::vector{gene}; }) ==
              doctest::Approx(0.4 / 3).epsilon(0.1));
    }
}

TEST_CASE("genetic: with probability `random`, the whole genome is random") {
    GeneticOptions options = crossover_only;
    options.random = 0.1;
    const Genome parent{1, 2, 3};
    const auto offspring = breed(options, integers(3, 1'000'000), of_genomes({parent, parent}));

    CHECK(share(offspring, [](const auto& one) { return one.bred_by == Operator::random; }) ==
          doctest::Approx(0.1).epsilon(0.12));
    for (const Offspring& one : offspring) {
        const bool is_parent = one.genome == parent;
        CHECK(is_parent == (one.bred_by == Operator::crossover));
        CHECK((one.parents[0] == Id{}) == (one.bred_by == Operator::random));
    }
}

TEST_CASE("genetic: a mutation of a choice reaches every option from every option") {
    GeneticOptions options = crossover_only;
    options.mutation = 1;
    const Space space{{{"n", IntGene{0, 1}}, {"word", ChoiceGene{{"a", "b", "c", "d"}}}}};

    for (const double from : {0.0, 1.0, 2.0, 3.0}) {
        const auto offspring = breed(options, space, of_genomes({{0, from}, {0, from}}), 2000);
        for (const double to : {0.0, 1.0, 2.0, 3.0}) {
            const double expected = from == to ? 0.5 + 0.125 : 0.125;  // one of two genes, one of four options
            CHECK(share(offspring, [to](const auto& one) { return one.genome[1] == to; }) ==
                  doctest::Approx(expected).epsilon(0.25));
        }
    }
}

TEST_CASE("genetic: a mutation of a whole number gives all whole numbers of the range, including both bounds") {
    GeneticOptions options = crossover_only;
    options.mutation = 1;
    const Space space{{{"n", IntGene{2, 10}}}};
    std::set<double> seen;

    for (const Offspring& one : breed(options, space, of_genomes({{5}, {5}}), 2000)) {
        seen.insert(one.genome[0]);
    }

    CHECK(seen == std::set<double>{2, 3, 4, 5, 6, 7, 8, 9, 10});
}

TEST_CASE("genetic: a real gene moves by a normal with a standard deviation of sigma times its range") {
    GeneticOptions options = crossover_only;
    options.sigma = 0.05;

    const auto offspring = breed(options, one_real(-10, 30), of_genomes({{10}, {10}}));
    const auto [mean, deviation] = moments(offspring, [](double x) { return x; });

    CHECK(std::abs(mean - 10) < 0.08);
    CHECK(deviation == doctest::Approx(2).epsilon(0.03));
}

TEST_CASE("genetic: of several real genes, one moves in each breeding, each equally often, and no other gene moves") {
    GeneticOptions options = crossover_only;
    options.sigma = 0.05;
    const Space space{
        {{"n", IntGene{0, 9}}, {"a", RealGene{0, 1}}, {"w", ChoiceGene{{"x", "y"}}}, {"b", RealGene{0, 1}}}};

    const auto offspring = breed(options, space, of_genomes({{3, 0.5, 1, 0.5}, {3, 0.5, 1, 0.5}}));

    CHECK(share(offspring, [](const auto& one) { return one.genome[0] == 3 && one.genome[2] == 1; }) == 1);
    CHECK(share(offspring, [](const auto& one) { return (one.genome[1] != 0.5) != (one.genome[3] != 0.5); }) == 1);
    CHECK(share(offspring, [](const auto& one) { return one.genome[1] != 0.5; }) == doctest::Approx(0.5).epsilon(0.05));
}

TEST_CASE("genetic: a gene with a log scale moves in its logarithm") {
    GeneticOptions options = crossover_only;
    options.sigma = 0.05;

    const auto offspring = breed(options, one_real(1e-4, 1e-2, Scale::log), of_genomes({{1e-3}, {1e-3}}));
    const auto [mean, deviation] = moments(offspring, [](double x) { return std::log10(x); });

    CHECK(std::abs(mean + 3) < 0.004);
    CHECK(deviation == doctest::Approx(0.1).epsilon(0.03));
}

TEST_CASE("genetic: from a bound, half of the moves stay at the bound, and the others move inwards") {
    GeneticOptions options = crossover_only;
    options.sigma = 0.05;
    for (const Scale scale : {Scale::linear, Scale::log}) {
        for (const double bound : {1e-4, 1e-2}) {
            const auto offspring = breed(options, one_real(1e-4, 1e-2, scale), of_genomes({{bound}, {bound}}));
            std::set<double> values;
            for (const Offspring& one : offspring) {
                values.insert(one.genome[0]);
            }

            CHECK(share(offspring, [bound](const auto& one) { return one.genome[0] == bound; }) ==
                  doctest::Approx(0.5).epsilon(0.05));
            CHECK(values.size() > draws / 3);
        }
    }
}

TEST_CASE("genetic: breeding depends only on the population and the random numbers, not on earlier breedings") {
    const Space space{{{"a", RealGene{0, 1}}, {"n", IntGene{0, 99}}}};
    const Population population = of_genomes({{0.1, 5}, {0.7, 50}, {0.3, 77}});
    const GeneticOptions options{3, 0.7, 0.4, 0.1, 0.05};
    const auto breed_one = [&](Propagator& propagator, std::uint64_t id) {
        RandomStream random(5, Purpose::breeding, id);
        return propagator.breed(population, 0, {}, random).genome;
    };
    const auto fresh = make_propagator(options, space, 1);
    const auto used = make_propagator(options, space, 1);
    for (std::uint64_t id = 0; id < 20; ++id) {
        (void)breed_one(*used, 1000 + id);
    }

    for (std::uint64_t id = 0; id < 100; ++id) {
        CHECK(breed_one(*fresh, id) == breed_one(*used, id));
    }
    CHECK(breed_one(*fresh, 1) != breed_one(*fresh, 2));
}

TEST_CASE("random search: ignores the population") {
    const Space space = one_real(0, 1);

    const auto offspring = breed(RandomSearchOptions{}, space, of_genomes({{0.5}, {0.5}, {0.5}}));
    const auto [mean, deviation] = moments(offspring, [](double x) { return x; });

    CHECK(share(offspring, [](const auto& one) { return one.bred_by == Operator::random; }) == 1);
    CHECK(mean == doctest::Approx(0.5).epsilon(0.03));
    CHECK(deviation == doctest::Approx(std::sqrt(1.0 / 12)).epsilon(0.03));
}

TEST_CASE("genetic: a space without genes gives genomes without genes") {
    CHECK(breed(GeneticOptions{2, 0.7, 1, 0, 0.05}, Space{}, of_genomes({{}, {}}), 5).back().genome.empty());
}

TEST_CASE("genetic: parents with a different number of genes throw Error") {
    const Population population = of_genomes({{1, 2}, {1, 2}});
    const auto propagator = make_propagator(crossover_only, integers(3, 9), 1);
    RandomStream random(1, Purpose::breeding);

    CHECK_THROWS_AS((void)propagator->breed(population, 0, {}, random), Error);
}

TEST_CASE("genetic: impossible options throw ConfigError, including NaN") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto refused = [](const GeneticOptions& options) {
        CHECK_THROWS_AS((void)make_propagator(options, integers(1, 1), 1), ConfigError);
    };

    refused({1, 0.7, 0.4, 0.1, 0.05});
    refused({16, 1.1, 0.4, 0.1, 0.05});
    refused({16, nan, 0.4, 0.1, 0.05});
    refused({16, 0.7, -0.1, 0.1, 0.05});
    refused({16, 0.7, 0.4, nan, 0.05});
    refused({16, 0.7, 0.4, 0.1, -1});
    refused({16, 0.7, 0.4, 0.1, nan});
}

TEST_CASE("genetic: the default options give recorded results for fixed random numbers") {
    const Space space{{{"x", RealGene{-1, 1}},
                       {"rate", RealGene{1e-4, 1, Scale::log}},
                       {"n", IntGene{1, 1000}},
                       {"word", ChoiceGene{{"a", "b", "c"}}},
                       {"depth", IntGene{1, 9}, {{3, {1, 2}}}}}};
    const Population population =
        of_genomes({{0.5, 0.1, 10, 1, 3}, {-0.5, 0.01, 20, 2, 5}, {0.1, 0.001, 30, 0, 1}, {0.9, 0.5, 400, 1, 7}});

    const auto offspring = breed(GeneticOptions{.population = 4}, space, population, 200);
    double sum = 0;
    for (const Offspring& one : offspring) {
        sum += one.genome[0] + std::log10(one.genome[1]) + one.genome[2] / 10 + one.genome[3] + one.genome[4];
    }

    CHECK(offspring[11].genome == Genome{0.11124472716196071, 0.001, 30, 1, 3});
    CHECK(sum == doctest::Approx(4304.7326427348107).epsilon(1e-12));
}
