#pragma once

#include "finch/search/propagator.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <doctest/doctest.h>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace finch::search {

using Loss = std::function<double(const Genome&)>;

/// Returns a space of `count` real genes in [low, high].
inline Space reals(std::size_t count, double low = -5, double high = 5) {
    Space space;
    for (std::size_t i = 0; i < count; ++i) {
        space.genes.push_back({"x" + std::to_string(i), RealGene{low, high}});
    }
    return space;
}

/// The minimum is 0, if all genes are 1.
inline double sphere(const Genome& x) {
    double sum = 0;
    for (const double value : x) {
        sum += (value - 1) * (value - 1);
    }
    return sum;
}

inline double rosenbrock(const Genome& x) {
    double sum = 0;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        sum += 100 * std::pow(x[i + 1] - x[i] * x[i], 2) + std::pow(1 - x[i], 2);
    }
    return sum;
}

/// Returns a space of eight genes of all kinds. mixed_loss() has one minimum of value 0 in it.
inline Space mixed_space() {
    return {{{"optimizer", ChoiceGene{{"sgd", "adam", "adadelta", "adamw"}}},
             {"activation", ChoiceGene{{"relu", "tanh", "sigmoid"}}},
             {"layers", IntGene{1, 8}},
             {"lr", RealGene{1e-5, 1, Scale::log}},
             {"momentum", RealGene{0, 1}},
             {"decay", RealGene{1e-6, 1e-1, Scale::log}},
             {"dropout", RealGene{0, 0.8}},
             {"width", IntGene{4, 64}}}};
}
inline double mixed_loss(const Genome& g) {
    const double rate = std::log10(g[3]) + 2.5 - 0.3 * g[0];
    return 0.4 * std::fmod(g[0] + 3, 4) + 0.5 * std::abs(g[1] - 1) + 0.03 * std::pow(g[2] - 5, 2) + rate * rate +
           std::pow(g[4] - 0.9, 2) + 0.1 * std::pow(std::log10(g[5]) + 4, 2) + std::pow(g[6] - 0.2, 2) +
           0.001 * std::pow(g[7] - 40, 2);
}

inline constexpr std::uint32_t most_breedings = 2000;  ///< maximum attempts to breed a genome under constraints

struct Found {
    double best = std::numeric_limits<double>::infinity();
    std::vector<Individual> all;
    std::map<Operator, int> ruled_out = {};  ///< number of genomes that a constraint excluded, per operator
};

/// Runs a search in one process. Every result arrives `in_flight` births late. A genome that violates a constraint is
/// bred again.
inline Found search_for(const PropagatorOptions& options, const Space& space, const Loss& loss,
                        std::int64_t evaluations, std::int32_t in_flight, std::uint64_t seed, double seconds = 0,
                        std::span<const Constraint> constraints = {}) {
    const auto propagator = make_propagator(options, space, seed);
    Population population(ExchangeKind::none, 1);
    std::deque<Individual> running;
    Found found;
    for (std::int64_t born = 0; born < evaluations || !running.empty(); ++born) {
        if (born >= in_flight || born >= evaluations) {
            Individual ended = running.front();
            running.pop_front();
            ended.outcome = Outcome::evaluated;
            ended.loss = loss(ended.genome);
            ended.finished = 10 + static_cast<double>(born);
            ended.started = seconds > 0 ? ended.finished - seconds : 0;
            found.best = std::min(found.best, ended.loss);
            found.all.push_back(ended);
            population.merge(std::move(ended));
        }
        if (born < evaluations) {
            Individual individual;
            individual.id = Id::make(0, 0, static_cast<std::uint32_t>(born + 1));
            Stage stage{.budget_used = static_cast<double>(population.finished()) / static_cast<double>(evaluations),
                        .evaluations = evaluations,
                        .workers = in_flight,
                        .births = static_cast<std::uint64_t>(born),
                        .constraints = constraints};
            const auto breed = [&] {
                RandomStream random(seed, Purpose::breeding, individual.id.value, stage.attempt++);
                return propagator->breed(population, 0, stage, random);
            };
            Offspring offspring = breed();
            for (; !all_hold(constraints, space, offspring.genome); offspring = breed()) {
                ++found.ruled_out[offspring.bred_by];
                REQUIRE(stage.attempt < most_breedings);
            }
            REQUIRE(space.contains(offspring.genome));
            individual.genome = std::move(offspring.genome);
            individual.bred_by = offspring.bred_by;
            individual.parents = offspring.parents;
            individual.breeding = offspring.breeding;
            population.merge(individual);
            running.push_back(std::move(individual));
        }
    }
    return found;
}

/// Returns the median of `of(seed)` over the seeds 1 to `count`.
template <class Of>
double median_over_seeds(std::uint64_t count, const Of& of) {
    std::vector<double> all;
    for (std::uint64_t seed = 1; seed <= count; ++seed) {
        all.push_back(of(seed));
    }
    std::nth_element(all.begin(), all.begin() + std::ssize(all) / 2, all.end());
    return all[all.size() / 2];
}

/// Returns the median of the best losses of seven searches in mixed_space().
inline double median_best(const PropagatorOptions& options, std::int64_t evaluations, std::int32_t in_flight) {
    std::vector<double> best;
    for (std::uint64_t seed = 1; seed <= 7; ++seed) {
        best.push_back(search_for(options, mixed_space(), mixed_loss, evaluations, in_flight, seed).best);
    }
    std::sort(best.begin(), best.end());
    return best[3];
}

/// Returns the number of evaluations to reach `target`, or infinity if no evaluation reached it.
inline double evaluations_to(const Found& found, double target) {
    const auto first = std::find_if(found.all.begin(), found.all.end(),
                                    [=](const Individual& individual) { return individual.loss <= target; });
    return first == found.all.end() ? std::numeric_limits<double>::infinity()
                                    : static_cast<double>(first - found.all.begin()) + 1;
}

}  // namespace finch::search
