// The tree-structured Parzen estimator: its densities, its splits and its children.
#include "search/propagators/tpe.hpp"

#include "finch/search/propagator.hpp"

#include "search/fit.hpp"
#include "search/samples.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <numeric>

using namespace finch;
using namespace finch::search;
using namespace finch::search::samples;

namespace {

constexpr int draws = 20000;

Space mixed() {
    return {{{"x", RealGene{-1, 3}},
             {"width", IntGene{1, 6, Scale::log}},
             {"step", RealGene{0, 1, Scale::linear, 0.25}},
             {"word", ChoiceGene{{"a", "b", "c"}}}}};
}

/// Returns a space with conditions. `momentum` depends on `optimizer`, which is declared after it. `look_ahead` depends
/// on `momentum`. `decay` and `warmup` depend on the other optimizer.
Space conditional() {
    return {{{"look_ahead", ChoiceGene{{"no", "yes"}}, {{1, {0.5, 0.9}}}},
             {"momentum", RealGene{0.1, 0.9, Scale::linear, 0.4}, {{2, {0}}}},
             {"optimizer", ChoiceGene{{"sgd", "adam"}}},
             {"decay", RealGene{0, 1}, {{2, {1}}}},
             {"fixed", IntGene{3, 3}},
             {"warmup", IntGene{0, 10}, {{2, {1}}}},
             {"layers", IntGene{1, 3}}}};
}

std::vector<std::size_t> all_of(const Space& space) {
    std::vector<std::size_t> genes(space.size());
    std::iota(genes.begin(), genes.end(), std::size_t{0});
    return genes;
}

std::vector<double> values_of(const Gene& gene) {
    std::vector<double> values;
    for (std::uint64_t k = 0; k < *value_count(gene); ++k) {
        const auto* whole = std::get_if<IntGene>(&gene.kind);
        const double share = (static_cast<double>(k) + 0.5) / static_cast<double>(*value_count(gene));
        values.push_back(whole != nullptr ? static_cast<double>(whole->low) + static_cast<double>(k)
                                          : from_unit(gene, share));
    }
    return values;
}

/// Points of the unit cube that keep their addresses.
struct Points {
    Points(const Space& space, const std::vector<Genome>& genomes) {
        for (const Genome& genome : genomes) {
            points.push_back(to_unit(space, genome));
        }
        for (const UnitGenome& point : points) {
            known.push_back(&point);
        }
    }
    std::vector<UnitGenome> points;
    std::vector<const UnitGenome*> known;
};

Individual known(std::uint32_t number, double loss, const Genome& genome) {
    Individual individual = evaluated(number, loss);
    individual.genome = genome;
    individual.finished = number;
    return individual;
}

/// Breeds `count` children from `population`, each with a different random stream.
std::vector<Offspring> bred_from(const Population& population, const Space& space, const TpeOptions& options,
                                 int count) {
    const auto propagator = make_propagator(options, space, 1);
    std::vector<Offspring> offspring;
    for (int i = 0; i < count; ++i) {
        RandomStream random(1, Purpose::breeding, static_cast<std::uint64_t>(i));
        offspring.push_back(propagator->breed(population, 0, {}, random));
    }
    return offspring;
}

double share_below(const std::vector<Offspring>& offspring, double bound) {
    const auto is_below = [bound](const Offspring& one) { return one.genome[0] < bound; };
    return static_cast<double>(std::count_if(offspring.begin(), offspring.end(), is_below)) /
           static_cast<double>(offspring.size());
}

}  // namespace

TEST_CASE("ParzenEstimator: the density over all values sums to 1") {
    const Space space = mixed();
    for (const std::vector<Genome>& genomes :
         {std::vector<Genome>{}, {{-1, 1, 0, 0}}, {{-1, 1, 1, 0}, {3, 6, 0.5, 1}, {2.9, 5, 0.5, 1}, {0, 2, 0, 2}}}) {
        const Points points(space, genomes);
        const ParzenEstimator density(space, all_of(space), points.known);
        constexpr int cells = 400;
        double sum = 0;
        for (const double width : values_of(space.genes[1])) {
            for (const double step : values_of(space.genes[2])) {
                for (const double word : {0.0, 1.0, 2.0}) {
                    for (int cell = 0; cell < cells; ++cell) {
                        const Genome genome{-1 + 4 * (cell + 0.5) / cells, width, step, word};
                        sum += std::exp(density.log_density(to_unit(space, genome))) / cells;
                    }
                }
            }
        }
        CHECK(sum == doctest::Approx(1).epsilon(1e-4));
    }
}

TEST_CASE("ParzenEstimator: draws follow the density, also at the bounds") {
    const Space space = mixed();
    const Points points(space, {{-1, 1, 0, 0}, {-1, 1, 0, 0}, {3, 6, 0.5, 1}, {2.9, 5, 0.5, 1}, {0, 2, 0, 2}});
    for (const std::size_t gene : all_of(space)) {
        CAPTURE(gene);
        const ParzenEstimator density(space, {gene}, points.known);
        RandomStream random(7, Purpose::test, gene);
        std::map<double, int> counts;
        std::map<double, double> probabilities;
        constexpr int cells = 40;
        constexpr int within = 50;
        const bool is_real = gene == 0;
        for (int i = 0; i < draws; ++i) {
            UnitGenome point(space.size());
            density.draw(point, random);
            const double value = from_unit(space.genes[gene], point[gene]);
            CHECK(point[gene] == doctest::Approx(to_unit(space.genes[gene], value)));
            ++counts[is_real ? std::floor(point[gene] * cells) : value];
        }
        const auto probability = [&](double u) {
            UnitGenome point(space.size());
            point[gene] = u;
            return std::exp(density.log_density(point));
        };
        for (int cell = 0; is_real && cell < cells; ++cell) {
            for (int i = 0; i < within; ++i) {
                probabilities[cell] += probability((cell + (i + 0.5) / within) / cells) / (cells * within);
            }
        }
        for (const double value : is_real ? std::vector<double>{} : values_of(space.genes[gene])) {
            probabilities[value] = probability(to_unit(space.genes[gene], value));
        }

        CHECK(misfit(counts, probabilities) < 1);
    }
}

TEST_CASE("ParzenEstimator: neighbouring numbers of a wide integer range have almost the same density") {
    const Space space{{{"n", IntGene{0, 9'999'999}}, {"m", IntGene{1, 9'999'999, Scale::log}}}};
    const Points points(space, {{5'000'000, 1000}, {5'100'000, 1200}});
    for (const std::size_t gene : {std::size_t{0}, std::size_t{1}}) {
        const ParzenEstimator density(space, {gene}, points.known);
        const auto at = [&](double value) { return density.log_density(to_unit(space, {value, value})); };
        CHECK(std::isfinite(at(1)));
        CHECK(std::isfinite(at(9'999'999)));
        CHECK(at(5'000'000) == doctest::Approx(at(5'000'001)).epsilon(1e-3));
        CHECK(at(gene == 0 ? 5'000'000 : 1000) > at(9'999'999));
    }
}

TEST_CASE("unit_cell: returns the interval of unit coordinates that from_unit maps to the same value") {
    RandomStream random(3, Purpose::test);
    for (const Gene& gene : {Gene{"n", IntGene{3, 40, Scale::log}}, Gene{"s", IntGene{2, 9, Scale::linear, 3}},
                             Gene{"l", IntGene{2, 20, Scale::log, 3}}, Gene{"w", ChoiceGene{{"a", "b", "c"}}},
                             Gene{"x", RealGene{0, 1, Scale::linear, 0.1}}, Gene{"f", IntGene{4, 4, Scale::log}}}) {
        CAPTURE(gene.name);
        for (int i = 0; i < 2000; ++i) {
            const double u = random.uniform();
            const UnitCell cell = unit_cell(gene, from_unit(gene, u));
            CHECK(cell.low <= u + 1e-12);
            CHECK(u <= cell.high + 1e-12);
            CHECK(from_unit(gene, cell.low + 1e-9) == from_unit(gene, u));
            CHECK(from_unit(gene, cell.high - 1e-9) == from_unit(gene, u));
        }
    }
    const UnitCell point = unit_cell(Gene{"r", RealGene{1, 3}}, 2);
    CHECK(point.low == 0.5);
    CHECK(point.high == 0.5);
}

TEST_CASE("tpe: genes that are active together form a group, after the genes that decide its activity") {
    using Groups = std::vector<std::vector<std::size_t>>;

    CHECK(TpeState({}, conditional()).groups() == Groups{{2, 6}, {1}, {0}, {3, 5}});
    CHECK(TpeState({}, mixed()).groups() == Groups{{0, 1, 2, 3}});
    CHECK(TpeState({}, Space{{{"n", IntGene{1, 1}}}}).groups().empty());
}

TEST_CASE("tpe: a group's good density uses its best share, at most 25 results, and only results with a loss") {
    const Space space = conditional();
    TpeState state({.startup = 1, .gamma = 0.1}, space);
    for (std::uint32_t i = 1; i <= 300; ++i) {
        const double optimizer = i % 3 == 0 ? 1 : 0;
        state.take(known(i, i > 290 ? Individual::not_measured : 300 - i,
                         canonical(space, {0, 0.5, optimizer, i / 300.0, 3, 2, 1})),
                   true);
    }

    const TpeState::Split all = state.split(0);
    CHECK(all.below.size() == 25);
    CHECK(all.above.size() == 275);
    const TpeState::Split adam = state.split(3);
    CHECK(adam.below.size() == 10);
    CHECK(adam.above.size() == 90);
    CHECK((*adam.below.front())[3] == doctest::Approx(288 / 300.0));  // the best result that has a loss

    TpeState failures({.startup = 1, .gamma = 0.5}, space);
    for (std::uint32_t i = 1; i <= 10; ++i) {
        failures.take(known(i, i == 4 ? 1 : Individual::not_measured, canonical(space, {0, 0.5, 1, i / 10.0, 3, 2, 1})),
                      true);
    }
    CHECK(failures.split(3).below.size() == 1);
    CHECK(failures.split(3).above.size() == 9);
}

TEST_CASE("tpe: the densities use at most 25 of the best and `most_points` of the newest results") {
    const Space space{{{"x", RealGene{0, 1}}}};
    TpeState state({.startup = 1, .most_points = 50}, space);
    for (std::uint32_t i = 1; i <= 1000; ++i) {
        state.take(known(i, i, {i / 1000.0}), true);
    }

    const TpeState::Split parts = state.split(0);
    CHECK(parts.below.size() == 25);
    CHECK((*parts.below.front())[0] == doctest::Approx(0.001));
    CHECK((*parts.below.back())[0] == doctest::Approx(0.025));
    CHECK(parts.above.size() == 50);
    CHECK((*parts.above.front())[0] > 0.95);
}

TEST_CASE("tpe: random until `startup` results are known, afterwards close to the best results") {
    const Space space{{{"x", RealGene{0, 1}}}};
    Population population(ExchangeKind::none, 1);
    for (std::uint32_t i = 1; i <= 40; ++i) {
        population.merge(known(i, i, {i / 40.0}));
    }

    const auto early = bred_from(population, space, {.startup = 41}, 2000);
    CHECK(early.front().bred_by == Operator::random);
    CHECK(share_below(early, 0.25) == doctest::Approx(0.25).epsilon(0.15));
    const auto late = bred_from(population, space, {.startup = 40}, 300);
    CHECK(late.front().bred_by == Operator::parzen);
    CHECK(share_below(late, 0.25) > 0.9);
}

TEST_CASE("tpe: individuals in training count as bad, and new children are therefore bred elsewhere") {
    const Space space{{{"x", RealGene{0, 1}}}};
    Population population(ExchangeKind::none, 1);
    for (std::uint32_t i = 1; i <= 40; ++i) {
        const double x = i / 41.0;
        population.merge(known(i, std::min(std::abs(x - 0.25), std::abs(x - 0.75)), {x}));
    }
    const auto alone = bred_from(population, space, {.gamma = 0.3}, 300);
    for (std::uint32_t i = 101; i <= 130; ++i) {
        Individual individual = bred(i);
        individual.genome = {0.2 + i / 1300.0};
        population.merge(individual);
    }

    CHECK(share_below(alone, 0.5) > 0.2);
    CHECK(share_below(bred_from(population, space, {.gamma = 0.3}, 300), 0.5) < 0.1);
}

TEST_CASE("tpe: an order-preserving transformation of the losses does not change the children") {
    const Space space = conditional();
    Population population(ExchangeKind::none, 1);
    Population transformed(ExchangeKind::none, 1);
    for (std::uint32_t i = 1; i <= 60; ++i) {
        RandomStream random(9, Purpose::test, i);
        const Genome genome = random_genome(space, random);
        const double loss = random.uniform();
        population.merge(known(i, loss, genome));
        transformed.merge(known(i, std::exp(30 * loss) - 5, genome));
    }
    const auto before = bred_from(population, space, {}, 50);
    const auto after = bred_from(transformed, space, {}, 50);

    for (std::size_t i = 0; i < before.size(); ++i) {
        CHECK(before[i].genome == after[i].genome);
    }
}

TEST_CASE("tpe: obeys constraints inside a group of genes and constraints between two groups") {
    const Space space{{{"kind", ChoiceGene{{"a", "b"}}},
                       {"x", RealGene{0, 1}},
                       {"y", RealGene{0, 1}},
                       {"z", RealGene{0, 1}, {{0, {1}}}}}};
    // The second constraint uses a gene of the later group, and one draw in fifty obeys it. The first constraint
    // excludes the model's best points.
    const std::vector<Constraint> constraints{{"x + y >= 0.5", space}, {"z >= x + 0.49 and z <= x + 0.51", space}};
    RandomStream random(3, Purpose::test);
    TpeState state({}, space);
    for (std::uint32_t i = 1; i <= 60; ++i) {
        const Genome genome =
            canonical(space, {i % 4 == 0 ? 0.0 : 1.0, random.uniform(), random.uniform(), random.uniform()});
        state.take(known(i, genome[1] + genome[2], genome), true);
    }

    int conditional = 0;
    for (int i = 0; i < 200; ++i) {
        const Offspring one = state.breed({}, constraints, random);
        CHECK(one.bred_by == Operator::parzen);
        CHECK(all_hold(constraints, space, one.genome));
        conditional += one.genome[0] == 1 ? 1 : 0;
    }
    CHECK(conditional > 20);
}

TEST_CASE("tpe: a gene with `uses` may be declared before the gene that decides its activity") {
    Space space{{{"momentum", RealGene{0, 1}}, {"optimizer", ChoiceGene{{"adam", "sgd"}}}, {"rate", RealGene{0, 1}}}};
    space.genes[0].uses = {{{1, {1}}}};
    CHECK(TpeState({}, space).groups() == std::vector<std::vector<std::size_t>>{{1, 2}, {0}});
    RandomStream random(5, Purpose::test);
    TpeState state({}, space);
    for (std::uint32_t i = 1; i <= 100; ++i) {
        const Genome genome = random_genome(space, random);
        state.take(known(i, std::abs(genome[2] - 0.3) + std::abs(genome[0] - 0.6), genome), true);
    }

    const std::vector<Constraint> constraints{{"momentum >= rate", space}};
    int sgd = 0;
    int near = 0;
    for (int i = 0; i < 100; ++i) {
        const Genome genome = state.breed({}, constraints, random).genome;
        CHECK(all_hold(constraints, space, genome));
        sgd += genome[1] == 1 ? 1 : 0;
        near += std::abs(genome[2] - 0.3) < 0.15 && (genome[1] == 0 || std::abs(genome[0] - 0.6) < 0.2) ? 1 : 0;
    }
    CHECK(sgd > 50);
    CHECK(near > 70);

    space.genes[1].uses = {{{0, {1}}}};  // each gene is used only with one value of the other
    CHECK(TpeState({}, space).groups() == std::vector<std::vector<std::size_t>>{{2}, {0}, {1}});
}

TEST_CASE("tpe: a small space is searched without repeated genomes") {
    const Space space{{{"a", ChoiceGene{{"x", "y", "z"}}}, {"b", IntGene{1, 8}}}};
    Population population(ExchangeKind::none, 1);
    std::set<Genome> genomes;
    int repeated = 0;
    for (std::uint32_t i = 1; i <= 20; ++i) {
        const Offspring one = bred_from(population, space, {.startup = 5}, static_cast<int>(i)).back();
        repeated += one.bred_by == Operator::parzen && genomes.contains(one.genome) ? 1 : 0;
        genomes.insert(one.genome);
        population.merge(known(i, one.genome[0] + one.genome[1], one.genome));
    }

    CHECK(repeated == 0);
    CHECK(genomes.contains({0, 1}));
}
