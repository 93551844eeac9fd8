// The particle swarm propagator: particles are slots, and any number of individuals may be in flight.
#include "search/propagators/swarm.hpp"

#include "simulated_search.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <map>

using namespace finch;
using namespace finch::search;

namespace {

constexpr std::size_t swarm_genes = 6;

/// Runs the textbook's loop over particles in arrays, on [0, 1]. Returns the number of evaluations to reach `target`.
double reference(const Loss& loss, double inertia, double weight, double fastest, std::size_t count, double target,
                 std::uint64_t seed) {
    RandomStream random(seed, Purpose::test);
    struct Particle {
        UnitGenome x, v, best;
        double best_loss = 0;
    };
    std::vector<Particle> swarm;
    UnitGenome best;
    double best_loss = std::numeric_limits<double>::infinity();
    const auto value = [&](const UnitGenome& x) {
        Genome genome;
        for (const double u : x) {
            genome.push_back(10 * u - 5);
        }
        return loss(genome);
    };
    for (int evaluations = 1; evaluations < 200'000; ++evaluations) {
        const std::size_t k = static_cast<std::size_t>(evaluations - 1) % count;
        if (swarm.size() < count) {
            Particle particle{random_point(swarm_genes, random), random_point(swarm_genes, random), {}, 0};
            for (std::size_t i = 0; i < swarm_genes; ++i) {
                particle.v[i] = std::clamp((particle.v[i] - particle.x[i]) / 2, -fastest, fastest);
            }
            particle.best = particle.x;
            particle.best_loss = std::numeric_limits<double>::infinity();
            swarm.push_back(particle);
        } else {
            for (std::size_t i = 0; i < swarm_genes; ++i) {
                double& x = swarm[k].x[i];
                double& v = swarm[k].v[i];
                v = inertia * v + weight * random.uniform() * (swarm[k].best[i] - x) +
                    weight * random.uniform() * (best[i] - x);
                const double to = reflect(x + std::clamp(v, -fastest, fastest));
                v = to - x;
                x = to;
            }
        }
        const double now = value(swarm[k].x);
        if (now <= target) {
            return evaluations;
        }
        if (now < swarm[k].best_loss) {
            swarm[k].best_loss = now;
            swarm[k].best = swarm[k].x;
        }
        if (now < best_loss) {
            best_loss = now;
            best = swarm[k].x;
        }
    }
    return std::numeric_limits<double>::infinity();
}

}  // namespace

TEST_CASE("swarm with one individual in flight needs as many evaluations as the textbook's loop, within 10 %") {
    struct Case {
        SwarmVariant variant;
        std::optional<double> clamping;
        double inertia;
        double weight;
        double fastest;
    };
    // Clerc and Kennedy's constriction factor for 2.05 + 2.05 is 0.72984.
    for (const Case& one :
         {Case{SwarmVariant::basic, {}, 0.729, 1.49445, 1e9}, Case{SwarmVariant::basic, 0.6, 0.729, 1.49445, 0.6},
          Case{SwarmVariant::canonical, 10, 0.72984, 0.72984 * 2.05, 1e9},
          Case{SwarmVariant::canonical, {}, 0.72984, 0.72984 * 2.05, 1}}) {
        CAPTURE(words_of(SwarmVariant())[static_cast<std::size_t>(one.variant)]);
        CAPTURE(one.fastest);
        const double median = median_over_seeds(41, [&](std::uint64_t seed) {
            return evaluations_to(
                search_for(SwarmOptions{.variant = one.variant, .particles = 15, .clamping = one.clamping},
                           reals(swarm_genes), sphere, 4000, 1, seed),
                1e-4);
        });
        const double expected = median_over_seeds(401, [&](std::uint64_t seed) {
            return reference(sphere, one.inertia, one.weight, one.fastest, 15, 1e-4, seed);
        });
        CHECK(median < 1.1 * expected);
        CHECK(median > 0.9 * expected);
    }
}

TEST_CASE("swarm: a particle moves by its inertia, towards its own best point and the best point of all") {
    SwarmState state(
        {.space = reals(1),
         .seed = 1,
         .options = {.variant = SwarmVariant::basic, .particles = 2, .inertia = 0.5, .cognitive = 0, .social = 0}});
    const auto at = [&](std::uint32_t number, Id parent, double unit, std::int32_t slot) {
        Individual individual;
        individual.id = Id::make(0, 0, number);
        individual.parents[0] = parent;
        individual.bred_by = Operator::swarm;
        individual.breeding.slot = slot;
        individual.genome = {10 * unit - 5};
        individual.outcome = Outcome::evaluated;
        individual.loss = unit;
        state.take(individual, true);
        return individual.id;
    };
    const Id first = at(1, {}, 0.2, 1);
    const Id second = at(2, first, 0.4, 1);
    CHECK(state.particles()[1].velocity[0] == doctest::Approx(0.2));
    CHECK(state.particles()[1].best[0] == doctest::Approx(0.2));

    at(3, first, 0.1, 1);  // bred before the particle's last move: updates its best point, but does not move it

    CHECK(state.particles()[1].now == second);
    CHECK(state.particles()[1].position[0] == doctest::Approx(0.4));
    CHECK(state.particles()[1].best[0] == doctest::Approx(0.1));
    RandomStream random(1, Purpose::test);
    Individual running;
    running.bred_by = Operator::random;
    running.breeding.slot = 0;
    const Offspring offspring = state.breed({.births = 100}, {&running, &running}, random);
    CHECK(offspring.breeding.slot == 1);
    CHECK(offspring.parents[0] == second);
    CHECK(offspring.genome[0] == doctest::Approx(0));  // 0.4 + 0.5 · 0.2 = 0.5
}

TEST_CASE("swarm: clamping limits velocities; without it, basic has no limit") {
    const auto fastest = [](const SwarmOptions& options) {
        double most = 0;
        std::map<Id, Genome> known;
        for (const Individual& individual : search_for(options, reals(swarm_genes), rosenbrock, 2000, 5, 1).all) {
            if (known.contains(individual.parents[0])) {
                for (std::size_t i = 0; i < swarm_genes; ++i) {
                    most = std::max(most, std::abs(individual.genome[i] - known[individual.parents[0]][i]) / 10);
                }
            }
            known[individual.id] = individual.genome;
        }
        return most;
    };
    CHECK(fastest({.variant = SwarmVariant::basic, .clamping = 0.05}) == doctest::Approx(0.05));
    CHECK(fastest({.variant = SwarmVariant::canonical, .clamping = 0.1}) == doctest::Approx(0.1));
    CHECK(fastest({.variant = SwarmVariant::basic}) > 0.2);
    CHECK(fastest({.variant = SwarmVariant::canonical, .clamping = 10}) > 0.2);
}

TEST_CASE("swarm: all particles move equally often, for any number of individuals in flight") {
    for (const std::int32_t in_flight : {1, 7, 100}) {
        CAPTURE(in_flight);
        const Found found = search_for(SwarmOptions{.particles = 20}, reals(swarm_genes), sphere, 4000, in_flight, 3);
        std::map<std::int32_t, int> results;
        for (const Individual& individual : found.all) {
            ++results[individual.breeding.slot];
        }
        CHECK(results.size() == 20);
        for (const auto& [slot, count] : results) {
            CHECK(std::abs(count - 200) <= 20);
        }
        CHECK(found.best < (in_flight > 20 ? 1e-2 : 1e-6));
    }
}

TEST_CASE("swarm: works with all gene kinds and conditions; particles do not stick to the bounds near a corner") {
    const Space mixed{{{"a", RealGene{1e-5, 1, Scale::log}},
                       {"k", IntGene{1, 40}},
                       {"kind", ChoiceGene{{"x", "y", "z"}}},
                       {"only_z", RealGene{0, 1}, {{2, {2}}}},
                       {"one", IntGene{3, 3}}}};
    const auto loss = [](const Genome& x) {
        return std::pow(std::log10(x[0]) + 3, 2) + 0.01 * std::abs(x[1] - 13) + (x[2] == 2 ? std::abs(x[3] - 0.3) : 1);
    };
    const double median = median_over_seeds(9, [&](std::uint64_t seed) {
        const Found found = search_for(SwarmOptions{}, mixed, loss, 3000, 8, seed);
        for (const Individual& individual : found.all) {
            CHECK(individual.genome == canonical(mixed, individual.genome));
        }
        return found.best;
    });
    CHECK(median < 1e-3);

    const Found corner = search_for(
        SwarmOptions{.particles = 20}, reals(3), [](const Genome& x) { return x[0] + x[1] - x[2]; }, 1500, 4, 1);
    CHECK(corner.best < -14.9);
    for (const Individual& individual : corner.all) {
        for (const double value : individual.genome) {
            CHECK((value > -5 && value < 5));
        }
    }
    const Space still{{{"a", IntGene{2, 2}}}};
    CHECK(search_for(
              SwarmOptions{}, still, [](const Genome&) { return 1.0; }, 90, 2, 1)
              .all.size() == 90);
}
