#include "front_evolution.hpp"

#include "evolution.hpp"
#include "unit_genome.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace finch::search {
namespace {

using Member = DifferentialEvolution::Member;

constexpr std::size_t most_parents = 50;
constexpr std::size_t least_parents = 20;  ///< until an island has so many results, genomes are random
constexpr double mutant_share = 0.25;
constexpr double crossed_genes = 0.5;
constexpr double crossover_index = 15;  ///< of the distributions of Deb and Agrawal 1995, and Deb and Goyal 1996
constexpr double mutation_index = 20;

/// Returns a child of two coordinates by simulated binary crossover.
double crossed(double a, double b, RandomStream& random) {
    const double u = random.uniform();
    const double factor = std::pow(u <= 0.5 ? 2 * u : 1 / (2 * (1 - u)), 1 / (crossover_index + 1));
    const double side = random.uniform() < 0.5 ? 1 : -1;
    return std::clamp(0.5 * (a + b) + side * 0.5 * factor * (b - a), 0.0, 1.0);
}

/// Moves a coordinate by polynomial mutation.
double moved(double x, RandomStream& random) {
    const double u = random.uniform();
    const double small = std::pow(2 * std::min(u, 1 - u), 1 / (mutation_index + 1)) - 1;
    return std::clamp(x + (u < 0.5 ? small : -small), 0.0, 1.0);
}

}  // namespace

Offspring bred_from_front(const Population& population, int island, const Space& space, RandomStream& random) {
    const std::vector<const Individual*> best = population.best(island, most_parents);
    const std::vector<std::size_t> free = free_genes(space);
    if (free.empty() || best.size() < least_parents) {
        return {.genome = random_genome(space, random)};
    }
    std::vector<Member> members;
    for (const Individual* one : best) {
        members.push_back({.point = to_unit(space, one->genome), .id = one->id});
    }
    if (random.uniform() < mutant_share) {
        return DifferentialEvolution(space, std::move(members)).mutant(space, random);
    }
    const auto drawn = [&] { return static_cast<std::size_t>(random.below(members.size())); };
    const Member& first = members[std::min(drawn(), drawn())];
    const Member& second = members[std::min(drawn(), drawn())];
    UnitGenome point = first.point;
    for (const std::size_t i : free) {
        if (random.uniform() < crossed_genes) {
            point[i] = is_choice(space.genes[i]) ? second.point[i] : crossed(point[i], second.point[i], random);
        }
    }
    for (const std::size_t i : free) {
        if (random.uniform() * static_cast<double>(free.size()) < 1) {
            point[i] = value_count(space.genes[i]) ? mutate_unit(space.genes[i], point[i], 1, 1, random)
                                                   : moved(point[i], random);
        }
    }
    return {.genome = child_genome(space, point, first.point, random),
            .parents = {first.id, second.id},
            .bred_by = Operator::crossover};
}

}  // namespace finch::search
