#include "finch/search/duplicates.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>
#include <utility>

namespace finch::search {
namespace {

/// Returns whether the result of `a` is preferred to the result of `b`.
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

std::size_t GenomeHash::operator()(const Genome& genome) const noexcept {
    std::uint64_t hash = genome.size();
    for (const double value : genome) {
        hash ^= std::bit_cast<std::uint64_t>(value + 0.0);  // -0 becomes 0
        hash *= 0x9E3779B97F4A7C15;
        hash ^= hash >> 32;
    }
    return hash;
}

bool is_reusable(const Individual& one) {
    const bool is_finished = one.is_complete() || one.outcome == Outcome::diverged;
    const bool is_copy = one.is_reused() && !one.is_of_another_run();
    return is_finished && !is_copy && !one.is_repeat() && one.inherited_from == Id{};
}

void OtherResults::add(Genome genome, Individual one, std::uint64_t of_run) {
    if (!one.is_reused()) {
        one.reused_from = one.id;
        one.reused_run = of_run;
    }
    one.genome = std::move(genome);
    one.pruning = {};  // rungs can only be compared within one run
    one.curve.clear();
    one.metrics.clear();
    add(std::move(one));
}

void OtherResults::forget(std::uint64_t run) {
    std::erase_if(results_, [run](const Individual& one) { return one.reused_run == run; });
}

const Individual* OtherResults::find(const Genome& genome) const {
    const auto known = results_.find(genome);
    return known != results_.end() ? &*known : nullptr;
}

void KnownGenomes::update(const Population& population, int island, bool with_training) {
    const auto& changes = population.changes(island);
    if (ended_.empty()) {
        ended_.reserve(changes.size());
    }
    for (; seen_ < changes.size(); ++seen_) {
        const Individual* change = changes[seen_];
        if (change->is_heir()) {
            continue;
        }
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
        if (population.island_now(individual->island) == island && !individual->is_repeat() && !individual->is_heir()) {
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
    individual.reused_run = twin.reused_run;
    for_each_field<Individual>([&](const auto& field) {
        if (field.is_result) {
            individual.*field.member = twin.*field.member;
        }
    });
    individual.finished = unix_seconds;
    individual.attempt = {};
    individual.joules = 0;
    return individual;
}

}  // namespace finch::search
