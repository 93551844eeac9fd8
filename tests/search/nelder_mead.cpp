// The Nelder-Mead propagator: simplices move several vertices at the same time, and results arrive in any order.
#include "search/propagators/nelder_mead.hpp"

#include "finch/base/error.hpp"

#include "simulated_search.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <numeric>
#include <set>

using namespace finch;
using namespace finch::search;

namespace {

/// Runs Nelder and Mead's sequential loop on the genes' own scale, from the first simplex of the propagator. Returns
/// the number of evaluations to reach `target`.
double reference(const Loss& loss, std::size_t genes, double target, std::uint64_t seed) {
    struct Vertex {
        Genome x;
        double f = 0;
    };
    const double n = std::max(2.0, static_cast<double>(genes));
    const double expand = 1 + 2 / n;
    const double contract = 0.75 - 1 / (2 * n);
    const double shrink = 1 - 1 / n;
    double count = 0;
    double found = std::numeric_limits<double>::infinity();
    const auto at = [&](const Genome& x) {
        const double f = loss(x);
        ++count;
        found = f <= target ? std::min(found, count) : found;
        return Vertex{x, f};
    };
    const NelderMeadState first({.space = reals(genes), .seed = seed});
    std::set<Genome> points;
    for (RandomStream random(1, Purpose::test); points.size() <= genes;) {
        points.insert(first.breed({.births = 1000}, {}, random).genome);
    }
    std::vector<Vertex> simplex;
    for (const Genome& x : points) {
        simplex.push_back(at(x));
    }
    while (count < 5000 && !std::isfinite(found)) {
        std::sort(simplex.begin(), simplex.end(), [](const Vertex& a, const Vertex& b) { return a.f < b.f; });
        Genome middle(genes);
        for (std::size_t i = 0; i < genes; ++i) {
            for (std::size_t k = 0; k < genes; ++k) {
                middle[i] += simplex[k].x[i] / static_cast<double>(genes);
            }
        }
        Vertex& worst = simplex.back();
        const auto along = [&](double by) {
            Genome x = middle;
            for (std::size_t i = 0; i < genes; ++i) {
                x[i] += by * (middle[i] - worst.x[i]);
            }
            return at(x);
        };
        const Vertex reflected = along(1);
        if (reflected.f < simplex.front().f) {
            const Vertex expanded = along(expand);
            worst = expanded.f < reflected.f ? expanded : reflected;
        } else if (reflected.f < simplex[genes - 1].f) {
            worst = reflected;
        } else {
            const bool is_outside = reflected.f < worst.f;
            const Vertex contracted = along(is_outside ? contract : -contract);
            if (contracted.f < worst.f && contracted.f <= reflected.f) {
                worst = contracted;
            } else {
                worst = is_outside ? reflected : worst;
                std::iter_swap(simplex.begin(),
                               std::min_element(simplex.begin(), simplex.end(),
                                                [](const Vertex& a, const Vertex& b) { return a.f < b.f; }));
                for (std::size_t k = 1; k <= genes; ++k) {
                    for (std::size_t i = 0; i < genes; ++i) {
                        const double best = simplex[0].x[i];
                        simplex[k].x[i] = best + shrink * (simplex[k].x[i] - best);
                    }
                    simplex[k] = at(simplex[k].x);
                }
            }
        }
    }
    return found;
}

std::size_t simplices_of(const Found& found) {
    std::set<std::int32_t> slots;
    for (const Individual& individual : found.all) {
        slots.insert(individual.breeding.slot);
    }
    return slots.size();
}

}  // namespace

TEST_CASE("nelder_mead with one worker needs exactly as many evaluations as Nelder and Mead's loop") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        CAPTURE(seed);
        const Found found = search_for(NelderMeadOptions{}, reals(2), sphere, 400, 1, seed);
        CHECK(evaluations_to(found, 1e-6) == reference(sphere, 2, 1e-6, seed));
        CHECK(simplices_of(found) == 1);
    }
    const double median = median_over_seeds(11, [](std::uint64_t seed) {
        return evaluations_to(search_for(NelderMeadOptions{.parallel = 1}, reals(5), sphere, 3000, 1, seed), 1e-6);
    });
    const double expected = median_over_seeds(11, [](std::uint64_t seed) { return reference(sphere, 5, 1e-6, seed); });
    CHECK(std::abs(median / expected - 1) < 0.1);
}

TEST_CASE("nelder_mead finds the minimum of rosenbrock's valley, with 1 and with 8 individuals in flight") {
    for (const std::int32_t in_flight : {1, 8}) {
        CAPTURE(in_flight);
        const double median = median_over_seeds(5, [&](std::uint64_t seed) {
            return search_for(NelderMeadOptions{}, reals(4), rosenbrock, 6000, in_flight, seed).best;
        });
        CHECK(median < 1e-8);
    }
}

TEST_CASE("nelder_mead: moving several vertices at the same time saves rounds, and many workers use more simplices") {
    const auto rounds = [](std::int64_t parallel, std::int32_t workers) {
        return median_over_seeds(7, [&](std::uint64_t seed) {
            const Found found =
                search_for(NelderMeadOptions{.parallel = parallel}, reals(8), sphere, 12'000, workers, seed);
            return evaluations_to(found, 1e-4) / workers;
        });
    };
    CHECK(rounds(4, 4) < 0.6 * rounds(1, 4));
    const Found found = search_for(NelderMeadOptions{.parallel = 4}, reals(8), sphere, 3000, 32, 1);
    CHECK(simplices_of(found) >= 6);
    CHECK(simplices_of(found) <= 32);
    std::set<Genome> distinct;
    for (const Individual& individual : found.all) {
        distinct.insert(individual.genome);
    }
    CHECK(distinct.size() > 2900);
}

TEST_CASE("nelder_mead depends on the order of the losses only") {
    const auto bred = [](const std::function<double(double)>& transform) {
        std::vector<Genome> genomes;
        for (const Individual& individual :
             search_for(
                 NelderMeadOptions{}, reals(3), [&](const Genome& x) { return transform(rosenbrock(x)); }, 1500, 4, 2)
                 .all) {
            genomes.push_back(individual.genome);
        }
        return genomes;
    };
    const std::vector<Genome> plain = bred([](double loss) { return loss; });
    CHECK(bred([](double loss) { return 1024 * loss; }) == plain);
    CHECK(bred([](double loss) { return loss * loss * loss; }) == plain);
}

TEST_CASE("nelder_mead: a simplex that has converged restarts at its best point, later at other points") {
    const auto loss = [](const Genome& x) {
        return std::min(sphere(x) + 3, std::pow(x[0] + 3, 2) + std::pow(x[1] + 3, 2));
    };
    int found_both = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        found_both += search_for(NelderMeadOptions{}, reals(2), loss, 6000, 1, seed).best < 1e-6 ? 1 : 0;
    }
    CHECK(found_both == 10);
}

TEST_CASE("nelder_mead works with whole numbers, steps and ordered choices, and refuses unordered choices") {
    Space space{{{"a", RealGene{1e-5, 1, Scale::log}},
                 {"k", IntGene{1, 64}},
                 {"step", RealGene{0, 1, Scale::linear, 0.05}},
                 {"width", ChoiceGene{{"8", "16", "32", "64"}, true}},
                 {"one", ChoiceGene{{"x"}}}}};
    const auto loss = [](const Genome& x) {
        return std::pow(std::log10(x[0]) + 3, 2) + 0.01 * std::pow(x[1] - 40, 2) + std::pow(x[2] - 0.35, 2) +
               0.1 * std::abs(x[3] - 2);
    };
    const double median = median_over_seeds(
        7, [&](std::uint64_t seed) { return search_for(NelderMeadOptions{}, space, loss, 1500, 4, seed).best; });
    CHECK(median < 0.02);

    space.genes.push_back({"kind", ChoiceGene{{"x", "y"}}});
    CHECK_THROWS_WITH_AS((void)make_propagator(NelderMeadOptions{}, space, 1),
                         doctest::Contains("kind is a choice without an order"), ConfigError);
}

TEST_CASE("nelder_mead starts its simplex at a guess, and continues if all evaluations fail") {
    NelderMeadState state({.space = reals(3), .seed = 1});
    Individual guess;
    guess.id = Id::make(0, 0, 1);
    guess.bred_by = Operator::given;
    guess.outcome = Outcome::evaluated;
    guess.genome = Genome(3, 3);
    guess.loss = 1;
    state.take(guess, true);
    REQUIRE(state.size() == 1);
    CHECK(state.simplex(0).vertices().front().point == UnitGenome(3, 0.8));
    CHECK(state.simplex(0).open_points().size() == 3);

    const Found failed = search_for(
        NelderMeadOptions{}, reals(3), [](const Genome&) { return std::numeric_limits<double>::infinity(); }, 100, 2,
        1);
    CHECK(failed.all.size() == 100);
}
