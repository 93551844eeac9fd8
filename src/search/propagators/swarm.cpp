#include "swarm.hpp"

#include "folding_propagator.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

// The particle swarm follows Kennedy and Eberhart 1995. Inertia follows Shi and Eberhart, "A modified particle swarm
// optimizer", 1998. The constriction factor follows Clerc and Kennedy, "The particle swarm: explosion, stability, and
// convergence in a multidimensional complex space", 2002, and its limit of velocities Eberhart and Shi, "Comparing
// inertia weights and constriction factors in particle swarm optimization", 2000.
namespace finch::search {
namespace {

constexpr std::int64_t usual_particles = 40;

/// Returns the index with the smallest key. If several indices have the smallest key, returns one of them with equal
/// probability.
template <class Key>
std::size_t least(std::size_t count, RandomStream& random, const Key& key) {
    std::size_t found = 0;
    std::uint64_t equals = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (i > 0 && key(i) < key(found)) {
            found = i;
            equals = 1;
        } else if (!(key(found) < key(i)) && random.below(++equals) == 0) {
            found = i;
        }
    }
    return found;
}

}  // namespace

SwarmState::Weights SwarmState::weights_of(const SwarmOptions& options) {
    if (options.variant == SwarmVariant::basic) {
        return {options.inertia, options.cognitive.value_or(1.49445), options.social.value_or(1.49445),
                options.clamping.value_or(std::numeric_limits<double>::infinity())};
    }
    const double cognitive = options.cognitive.value_or(2.05);             // φ1
    const double social = options.social.value_or(2.05);                   // φ2
    const double sum = cognitive + social;                                 // φ
    const double factor = 2 / (sum - 2 + std::sqrt(sum * sum - 4 * sum));  // χ
    return {factor, factor * cognitive, factor * social, options.clamping.value_or(1)};
}

std::size_t SwarmState::size(const SwarmOptions& options, std::int32_t workers) {
    const auto usual = std::max<std::int64_t>(usual_particles, workers);
    return static_cast<std::size_t>(options.particles > 0 ? options.particles : usual);
}

SwarmState::SwarmState(SwarmPlan plan)
    : plan_(std::move(plan)),
      weights_(weights_of(plan_.options)),
      free_(free_genes(plan_.space)),
      particles_(size(plan_.options, plan_.workers)) {
    std::vector<std::size_t> all(plan_.space.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = i;
    }
    thresholds_ = thresholds_of(plan_.space, all);
}

/// Returns the position of an individual. The coordinate of a discrete gene is drawn at random among all coordinates of
/// the same value, so that small steps have an effect, too. The coordinate of an inactive gene is taken from `before`.
UnitGenome SwarmState::point_of(const Individual& individual, const UnitGenome& before) const {
    RandomStream random(plan_.seed, Purpose::breeding_state, individual.id.value, 1);
    UnitGenome point = to_unit(plan_.space, individual.genome);
    const std::vector<bool> active = active_genes(plan_.space, individual.genome);
    for (std::size_t i = 0; i < point.size(); ++i) {
        const Gene& gene = plan_.space.genes[i];
        if (!active[i] && !before.empty()) {
            point[i] = before[i];
        } else if (!thresholds_[i].empty() && !is_choice(gene)) {
            const Cell cell = cell_at(thresholds_[i], point[i]);
            point[i] = std::lerp(std::max(cell.low, 0.0), std::min(cell.high, 1.0), random.uniform());
        }
    }
    return point;
}

void SwarmState::take(const Individual& individual, bool born_here) {
    const bool is_ours = born_here && (individual.bred_by == Operator::swarm ||
                                       individual.bred_by == Operator::random || individual.bred_by == Operator::given);
    auto particle = particles_.end();
    if (is_ours && individual.breeding.slot < 0) {
        particle =
            std::find_if(particles_.begin(), particles_.end(), [](const Particle& one) { return one.now == Id{}; });
    } else if (is_ours && static_cast<std::size_t>(individual.breeding.slot) < particles_.size()) {
        particle = particles_.begin() + individual.breeding.slot;
    }
    const UnitGenome point = point_of(individual, particle != particles_.end() ? particle->position : UnitGenome{});
    const double loss = comparable_loss(individual);
    if (loss < best_loss_) {
        best_loss_ = loss;
        best_ = point;
        best_id_ = individual.id;
    }
    if (particle == particles_.end()) {
        return;
    }
    ++particle->results;
    if (loss < particle->best_loss || particle->best.empty()) {
        particle->best_loss = loss;
        particle->best = point;
    }
    if (particle->now == Id{}) {
        // The first velocity is half the distance to a random position, as in standard PSO 2007.
        RandomStream random(plan_.seed, Purpose::breeding_state, individual.id.value, 2);
        for (const double from : point) {
            particle->velocity.push_back(
                std::clamp((random.uniform() - from) / 2, -weights_.fastest, weights_.fastest));
        }
    } else if (particle->now == individual.parents[0]) {
        for (std::size_t i = 0; i < point.size(); ++i) {
            particle->velocity[i] = point[i] - particle->position[i];
        }
    } else {
        return;
    }
    particle->position = point;
    particle->now = individual.id;
}

UnitGenome SwarmState::moved(const Particle& particle, RandomStream& random) const {
    const UnitGenome& best = best_.empty() ? particle.best : best_;
    UnitGenome point = particle.position;
    for (const std::size_t i : free_) {
        const double from = point[i];
        const double cognitive = weights_.cognitive * random.uniform();
        const double social = weights_.social * random.uniform();
        if (is_choice(plan_.space.genes[i])) {
            const double which = random.uniform() * (weights_.inertia + cognitive + social);
            point[i] = which < cognitive ? particle.best[i] : which < cognitive + social ? best[i] : from;
            continue;
        }
        const double velocity =
            weights_.inertia * particle.velocity[i] + cognitive * (particle.best[i] - from) + social * (best[i] - from);
        point[i] = reflect(from + std::clamp(velocity, -weights_.fastest, weights_.fastest));
    }
    return point;
}

/// Chooses a particle with the fewest individuals in training; among several, the one with the fewest results.
std::size_t SwarmState::choose(const std::vector<const Individual*>& in_training, RandomStream& random) const {
    std::vector<std::int64_t> running(particles_.size());
    for (const Individual* individual : in_training) {
        const std::int32_t slot = individual->breeding.slot;
        const bool is_of_swarm = individual->bred_by == Operator::swarm || individual->bred_by == Operator::random;
        if (is_of_swarm && slot >= 0 && static_cast<std::size_t>(slot) < running.size()) {
            ++running[static_cast<std::size_t>(slot)];
        }
    }
    return least(particles_.size(), random,
                 [&](std::size_t i) { return std::pair(running[i], particles_[i].results); });
}

Offspring SwarmState::breed(const Stage& stage, const std::vector<const Individual*>& in_training,
                            RandomStream& random) const {
    Offspring offspring;
    offspring.breeding.budget_used = stage.budget_used;
    // The first births are assigned by their number, because no worker knows the births of the others yet.
    const bool is_dealt = stage.births < particles_.size() && particles_[stage.births].now == Id{};
    const std::size_t slot = is_dealt ? static_cast<std::size_t>(stage.births) : choose(in_training, random);
    const Particle& particle = particles_[slot];
    offspring.breeding.slot = static_cast<std::int32_t>(slot);
    if (particle.now == Id{} || free_.empty()) {
        offspring.genome = random_genome(plan_.space, random);
        return offspring;
    }
    offspring.genome = child_genome(plan_.space, moved(particle, random), particle.position, random);
    offspring.parents = {particle.now, best_id_};
    offspring.bred_by = Operator::swarm;
    return offspring;
}

std::unique_ptr<Propagator> make(const SwarmOptions& options, const Space& space, std::uint64_t seed) {
    return std::make_unique<FoldingPropagator<SwarmState, SwarmOptions>>(options, space, seed);
}

}  // namespace finch::search
