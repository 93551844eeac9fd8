#include "finch/search/duplicates.hpp"
#include "finch/search/gene.hpp"
#include "finch/search/propagator.hpp"

#include "search/fit.hpp"
#include "search/samples.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::search;
using namespace finch::search::samples;

namespace {

/// `look_ahead` depends on `momentum`, and `momentum` depends on `optimizer`, which is declared after both.
const Space conditional{{{"look_ahead", ChoiceGene{{"no", "yes"}}, {{1, {0.5, 0.9}}}},
                         {"momentum", RealGene{0.1, 0.9, Scale::linear, 0.4}, {{2, {0}}}},
                         {"optimizer", ChoiceGene{{"sgd", "adam", "adadelta"}}},
                         {"beta", RealGene{0.8, 0.99}, {{2, {1, 2}}, {4, {2, 3}}}},
                         {"layers", IntGene{1, 3}}}};

std::vector<Genome> bred_from(const std::vector<Genome>& parents, GeneticOptions options, const Space& of_space,
                              int count = 4000) {
    options.population = std::ssize(parents);
    const auto propagator = make_propagator(options, of_space, 1);
    const Population population = of_genomes(parents);
    std::vector<Genome> genomes;
    for (int i = 0; i < count; ++i) {
        RandomStream random(1, Purpose::breeding, static_cast<std::uint64_t>(i));
        genomes.push_back(propagator->breed(population, 0, {}, random).genome);
        CHECK(of_space.contains(genomes.back()));
        CHECK(genomes.back() == canonical(of_space, genomes.back()));
    }
    return genomes;
}

}  // namespace

TEST_CASE("a gene is active if all its conditions hold and the genes in its conditions are active") {
    using Active = std::vector<bool>;

    CHECK(active_genes(conditional, {1, 0.9, 0, 0.9, 2}) == Active{true, true, true, false, true});
    CHECK(active_genes(conditional, {1, 0.1, 0, 0.9, 2}) == Active{false, true, true, false, true});
    CHECK(active_genes(conditional, {1, 0.9, 1, 0.9, 2}) == Active{false, false, true, true, true});
    CHECK(active_genes(conditional, {1, 0.9, 1, 0.9, 1}) == Active{false, false, true, false, true});
}

TEST_CASE("canonical: genomes that mean the same training have the same canonical genome") {
    const Genome one = canonical(conditional, {1, 0.9, 1, 0.95, 3});

    CHECK(one == Genome{0, 0.1, 1, 0.95, 3});
    CHECK(canonical(conditional, {0, 0.5, 1, 0.95, 3}) == one);
    CHECK(canonical(conditional, one) == one);
    CHECK(canonical(conditional, {0, 0.5, 2, 0.95, 3}) != one);
    CHECK(genome_text(conditional, one) == "optimizer = adam, beta = 0.95, layers = 3");
}

TEST_CASE("a gene with `uses` is active only if at least one of its uses has an effect") {
    // Only sgd uses `momentum`. Both the first layers and the last layers use `width`, and both numbers of layers may
    // be 0. `last` depends on `switch`: if `switch` is 0, there is one last layer, the default.
    const Space used{{{"optimizer", ChoiceGene{{"sgd", "adam"}}},
                      {"momentum", RealGene{0.1, 0.9}, {}, {{{0, {0}}}}},
                      {"first", IntGene{0, 2}},
                      {"width", IntGene{1, 9}, {}, {{{2, {0}, true}}, {{3 + 1, {0}, true}}}},
                      {"last", IntGene{0, 2}, {{5, {1}}}},
                      {"switch", IntGene{0, 1}}}};
    using Active = std::vector<bool>;

    CHECK(active_genes(used, {0, 0.5, 1, 5, 0, 1}) == Active{true, true, true, true, true, true});
    CHECK(active_genes(used, {1, 0.5, 0, 5, 2, 1}) == Active{true, false, true, true, true, true});
    CHECK(active_genes(used, {1, 0.5, 0, 5, 0, 1}) == Active{true, false, true, false, true, true});
    CHECK(active_genes(used, {1, 0.5, 0, 5, 0, 0}) == Active{true, false, true, true, false, true});
    CHECK(used.has_conditions());
    CHECK(canonical(used, {1, 0.5, 0, 5, 0, 1}) == Genome{1, 0.1, 0, 1, 0, 1});
    CHECK_FALSE(can_repeat({{{"lr", RealGene{0, 1}}, {"n", IntGene{0, 1}}}}));
    CHECK(can_repeat({{{"lr", RealGene{0, 1, Scale::linear, 0.1}}, {"n", IntGene{0, 1}}}}));
    CHECK(can_repeat(used));
    RandomStream random(4, Purpose::test);
    for (int i = 0; i < 1000; ++i) {
        const Genome genome = random_genome(used, random);
        CHECK(genome == canonical(used, genome));
    }
}

TEST_CASE("random genomes are canonical, and conditions do not change the distribution of an active gene") {
    RandomStream random(2, Purpose::test);
    std::map<double, int> optimizers;
    std::map<double, int> momenta;
    std::vector<double> betas;

    for (int i = 0; i < 20000; ++i) {
        const Genome genome = random_genome(conditional, random);
        const std::vector<bool> active = active_genes(conditional, genome);
        CHECK(genome == canonical(conditional, genome));
        ++optimizers[genome[2]];
        if (active[1]) {
            ++momenta[genome[1]];
        }
        if (active[3]) {
            betas.push_back(to_unit(conditional.genes[3], genome[3]));
        }
    }

    CHECK(misfit(optimizers, {{0, 1 / 3.0}, {1, 1 / 3.0}, {2, 1 / 3.0}}) < 1);
    CHECK(misfit(momenta, {{0.1, 1 / 3.0}, {0.5, 1 / 3.0}, {0.9, 1 / 3.0}}) < 1);
    CHECK(distance_from_uniform(betas) < 1);
}

TEST_CASE("draw_missing draws the active genes that were not chosen, in the order of their conditions") {
    RandomStream random(3, Purpose::test);
    std::map<double, int> momenta;
    for (int i = 0; i < 5000; ++i) {
        const Genome genome = draw_missing(conditional, {0, 0, 0, 0, 2}, {false, false, true, false, true}, random);
        CHECK(genome[2] == 0);
        CHECK(genome[3] == 0.8);
        CHECK(genome[4] == 2);
        ++momenta[genome[1]];
    }

    CHECK(misfit(momenta, {{0.1, 1 / 3.0}, {0.5, 1 / 3.0}, {0.9, 1 / 3.0}}) < 1);
}

TEST_CASE("crossover: a gene that one parent does not use comes from the parent that uses it") {
    const Genome sgd{1, 0.9, 0, 0.8, 3};
    const Genome adam{0, 0.1, 1, 0.95, 3};

    for (const Genome& genome : bred_from({sgd, adam}, {2, 0.5, 0, 0, 0}, conditional)) {
        CHECK((genome == sgd || genome == adam));
    }
}

TEST_CASE("mutation changes active genes only, and draws a new value for a gene that becomes active") {
    const Space switched{{{"on", IntGene{0, 1}}, {"rate", RealGene{0, 1, Scale::linear, 0.25}, {{0, {1}}}}}};
    std::map<double, int> rates;
    std::size_t off = 0;

    for (const Genome& genome : bred_from({{0, 0}, {0, 0}}, {2, 0.5, 1, 0, 0}, switched, 20000)) {
        if (genome[0] == 1) {
            ++rates[genome[1]];
        } else {
            ++off;
        }
    }

    CHECK(off == doctest::Approx(10000).epsilon(0.03));  // each mutation changes `on`, the only active gene
    CHECK(misfit(rates, {{0, 0.2}, {0.25, 0.2}, {0.5, 0.2}, {0.75, 0.2}, {1, 0.2}}) < 1);
}

TEST_CASE("fixed genes are never mutated, and a mutation never selects them instead of a free gene") {
    const Space partly{{{"frozen", RealGene{0.9, 0.9}}, {"n", IntGene{0, 999999}}, {"word", ChoiceGene{{"a"}}}}};
    std::size_t changed = 0;

    for (const Genome& genome : bred_from({{0.9, 5, 0}, {0.9, 5, 0}}, {2, 0.5, 1, 0, 0.5}, partly)) {
        CHECK(genome[0] == 0.9);
        changed += genome[1] != 5 ? 1 : 0;
    }

    CHECK(changed == 4000);
}

TEST_CASE("a real gene with a step moves by at least one step, equally often up and down") {
    const Space stepped{{{"x", RealGene{0, 1, Scale::linear, 0.1}}, {"n", IntGene{2, 2}}}};
    std::map<double, int> counts;

    for (const Genome& genome : bred_from({{0.5, 2}, {0.5, 2}}, {2, 0.5, 0, 0, 0.05}, stepped)) {
        ++counts[genome[0]];
    }

    CHECK(counts[0.5] == 0);  // a move changes the value by at least one step
    CHECK(counts[0.4] == doctest::Approx(counts[0.6]).epsilon(0.1));
    CHECK(counts[0.3] > 0);
}

TEST_CASE("a space with fixed genes only gives the same genome for every child") {
    const Space nothing{{{"a", RealGene{0.9, 0.9}}, {"b", IntGene{3, 3}}}};

    for (const Genome& genome : bred_from({{0.9, 3}, {0.9, 3}}, {2, 0.5, 1, 0.1, 0.05}, nothing, 50)) {
        CHECK(genome == Genome{0.9, 3});
    }
}
