#include "finch/search/duplicates.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>

namespace finch::search {
namespace {

/// Whose result is to be taken before another's.
bool comes_first(const Individual& a, const Individual& b) {
    const auto failed = [](const Individual& one) { return one.outcome == Outcome::failed; };
    return std::tuple(a.is_reused(), failed(a), a.id) < std::tuple(b.is_reused(), failed(b), b.id);
}

}  // namespace

bool can_repeat(const Space& space) {
    return std::none_of(space.genes.begin(), space.genes.end(), [](const Gene& gene) {
        return !is_fixed(gene) && gene.when.empty() && gene.uses.empty() && !value_count(gene);
    });
}

std::size_t KnownGenomes::Hash::operator()(const Genome& genome) const noexcept {
    std::uint64_t hash = genome.size();
    for (const double value : genome) {
        hash ^= std::bit_cast<std::uint64_t>(value + 0.0);  // -0 is 0
        hash *= 0x9E3779B97F4A7C15;
        hash ^= hash >> 32;
    }
    return hash;
}

void KnownGenomes::update(const Population& population, int island, bool with_training) {
    const auto& changes = population.changes(island);
    for (; seen_ < changes.size(); ++seen_) {
        const Individual* change = changes[seen_];
        const auto [known, is_new] = ended_.insert(change);
        if (!is_new && comes_first(*change, **known)) {
            ended_.erase(known);
            ended_.insert(change);
        }
    }
    in_training_.clear();
    if (!with_training) {
        return;
    }
    for (const Individual* individual : population.unfinished()) {
        if (population.island_now(individual->island) == island && !individual->is_repeat()) {
            in_training_.insert(individual);
        }
    }
}

const Individual* KnownGenomes::find(const Genome& genome) const {
    for (const Set* set : {&ended_, &in_training_}) {
        if (const auto known = set->find(genome); known != set->end()) {
            return *known;
        }
    }
    return nullptr;
}

Individual with_result_of(Individual individual, const Individual& twin, double unix_seconds) {
    individual.reused_from = twin.is_reused() ? twin.reused_from : twin.id;
    individual.outcome = twin.outcome;
    individual.loss = twin.loss;
    individual.accuracy = twin.accuracy;
    individual.epochs = twin.epochs;
    individual.best_epoch = twin.best_epoch;
    individual.problem = twin.problem;
    individual.finished = unix_seconds;
    individual.pruning = twin.pruning;
    individual.parameters = twin.parameters;
    individual.ranks = twin.ranks;
    individual.threads = twin.threads;
    individual.batch_size = twin.batch_size;
    individual.node = twin.node;
    individual.device = twin.device;
    individual.attempt = {};
    return individual;
}

}  // namespace finch::search
