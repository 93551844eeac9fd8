#include "finch/search/inheritance.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>
#include <variant>

namespace finch::search {
namespace {

std::size_t place_of(std::int32_t rung) {
    return static_cast<std::size_t>(rung) - 1;
}

/// Returns, for each rung, the number of trainings that were pruned there and are not replaced by an heir yet.
std::array<std::int64_t, most_rungs> heirs_due(const Population& population, int island, const Rungs& rungs) {
    std::array<std::int64_t, most_rungs> due{};
    for (const auto& [id, one] : population.individuals()) {
        if (population.island_now(one.island) != island || one.is_reused()) {
            continue;
        }
        if (one.outcome == Outcome::pruned) {
            ++due.at(place_of(one.pruning->rung));
        }
        if (one.is_heir() && one.retry_of == Id{}) {
            --due.at(place_of(rungs.passed(one.inherited_epochs)));
        }
    }
    return due;
}

/// Returns the parents of heirs that begin at `rung`: the best quarter of the trainings that reached it, but at least
/// one and at most `most`.
std::vector<const Individual*> parents_at(const Population& population, int island, std::int32_t rung,
                                          std::int64_t most) {
    std::vector<const Individual*> best = continued_after(population, island, rung);
    const auto ended_there = std::ranges::count_if(population.individuals(), [&](const auto& known) {
        const Individual& one = known.second;
        return one.outcome == Outcome::pruned && one.pruning->rung == rung && !one.is_reused() &&
               population.island_now(one.island) == island;
    });
    const std::int64_t quarter = std::max<std::int64_t>(1, (std::ssize(best) + ended_there) / 4);
    best.resize(static_cast<std::size_t>(std::min({std::ssize(best), quarter, most})));
    return best;
}

/// Returns a new value of a gene: a number moves by a normal random number, a choice is drawn anew at the rate
/// `perturb`.
double moved(const Gene& gene, double value, double perturb, RandomStream& random) {
    if (std::holds_alternative<ChoiceGene>(gene.kind)) {
        return random.uniform() < perturb ? mutate_value(gene, value, random) : value;
    }
    return move_value(gene, value, perturb * random.normal());
}

/// Moves the genes of `heir` one after another, and keeps each move that obeys the constraints and can continue.
void explore(Individual& heir, double perturb, const InitialDesign& design, RandomStream& random,
             const std::function<bool(const Individual& heir)>& can_continue) {
    const Space& space = design.space;
    for (std::size_t i = 0; i < space.size(); ++i) {
        std::vector<bool> active = active_genes(space, heir.genome);
        if (!active[i] || is_fixed(space.genes[i])) {
            continue;
        }
        Genome genome = heir.genome;
        genome[i] = moved(space.genes[i], genome[i], perturb, random);
        genome = draw_missing(space, std::move(genome), std::move(active), random);
        std::swap(heir.genome, genome);
        if (!design.allows(heir.genome) || !can_continue(heir)) {
            std::swap(heir.genome, genome);
        }
    }
}

}  // namespace

std::vector<const Individual*> continued_after(const Population& population, int island, std::int32_t rung) {
    const auto loss_at = [rung](const Individual& one) { return one.pruning->losses.at(place_of(rung)); };
    std::vector<const Individual*> found;
    for (const auto& [id, one] : population.individuals()) {
        const bool ended_there = one.outcome == Outcome::pruned && one.pruning->rung == rung;
        if (population.island_now(one.island) == island && !one.is_reused() && std::isfinite(loss_at(one)) &&
            !ended_there) {
            found.push_back(&one);
        }
    }
    std::sort(found.begin(), found.end(), [&](const Individual* a, const Individual* b) {
        return std::tuple(loss_at(*a), a->id) < std::tuple(loss_at(*b), b->id);
    });
    return found;
}

bool differ_only_in(const std::vector<std::string>& names, const Space& space, const Genome& a, const Genome& b) {
    const std::vector<bool> active_in_a = active_genes(space, a);
    const std::vector<bool> active_in_b = active_genes(space, b);
    for (std::size_t i = 0; i < space.size(); ++i) {
        const bool may_differ = std::ranges::find(names, space.genes[i].name) != names.end();
        if (!may_differ && (active_in_a[i] != active_in_b[i] || (active_in_a[i] && a[i] != b[i]))) {
            return false;
        }
    }
    return true;
}

bool make_heir(Individual& newborn, const InheritOptions& options, const InitialDesign& design,
               const Population& population, RandomStream& random,
               const std::function<bool(const Individual& heir)>& can_continue) {
    const int island = population.island_now(newborn.island);
    if (static_cast<std::int64_t>(population.finished_on(island)) < options.population) {
        return false;
    }
    const auto due = heirs_due(population, island, options.rungs);
    for (auto rung = static_cast<std::int32_t>(most_rungs); rung > 0; --rung) {
        if (due.at(place_of(rung)) <= 0) {
            continue;
        }
        const auto parents = parents_at(population, island, rung, options.parents);
        for (const std::uint32_t choice : random.permutation(static_cast<std::uint32_t>(parents.size()))) {
            Individual heir = newborn;
            heir.parents = {parents[choice]->id, Id{}};
            begin_at_rung(heir, parents[choice]->id, rung, options.rungs);
            heir.bred_by = Operator::perturbation;
            heir.genome = parents[choice]->genome;
            if (can_continue(heir)) {
                explore(heir, options.perturb, design, random, can_continue);
                newborn = std::move(heir);
                return true;
            }
        }
    }
    return false;
}

void begin_at_rung(Individual& heir, Id parent, std::int32_t rung, const Rungs& rungs) {
    heir.inherited_from = parent;
    heir.inherited_epochs = heir.epochs = static_cast<std::int32_t>(rungs.epoch_of(rung));
    heir.pruning.edit().rung = rung;
}

void begin_anew(Individual& individual) {
    if (individual.is_heir()) {
        individual.inherited_epochs = 0;
        individual.epochs = 0;
        individual.pruning = {};  // its rung is that of its parent
    }
    individual.inherited_from = {};
}

}  // namespace finch::search
