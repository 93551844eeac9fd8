#include "nelder_mead.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "folding_propagator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

namespace finch::search {
namespace {

constexpr std::size_t most_slots = 100'000;

/// Returns whether `genome` is the genome of the point `wanted`. `place`: the point of `genome`. Real genes count as
/// equal if they differ only by a rounding error.
bool means(const Space& space, const UnitGenome& wanted, const Genome& genome, const UnitGenome& place) {
    const Genome bred = from_unit(space, wanted);
    for (std::size_t i = 0; i < genome.size(); ++i) {
        if (bred[i] != genome[i] && (value_count(space.genes[i]) ||
                                     !(std::abs(to_unit(space.genes[i], bred[i]) - place[i]) <= coordinate_rounding))) {
            return false;
        }
    }
    return true;
}

}  // namespace

NelderMeadState::NelderMeadState(NelderMeadPlan plan) : plan_(std::move(plan)), free_(free_genes(plan_.space)) {
    for (const std::size_t gene : free_) {
        if (is_choice(plan_.space.genes[gene])) {
            throw ConfigError(
                fmt::format("nelder_mead moves numbers and ordered choices, and {} is a choice without an order; "
                            "accepted: `ordered: "
                            "true` there, one value, or another propagator",
                            plan_.space.genes[gene].name));
        }
    }
    const std::int64_t genes = std::ssize(free_);
    const std::int64_t usual = std::min<std::int64_t>((genes + 2) / 3, plan_.workers);
    const std::int64_t wanted = plan_.options.parallel > 0 ? plan_.options.parallel : usual;
    parallel_ = static_cast<std::size_t>(std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, genes / 2)));
    for (const Gene& gene : plan_.space.genes) {
        const auto count = value_count(gene);
        edges_.push_back(std::max(plan_.options.size, count ? 1 / static_cast<double>(*count) : 0.0));
    }
}

Simplex NelderMeadState::simplex_around(const UnitGenome& centre, std::optional<double> loss) const {
    return {centre, edges_, free_, parallel_, loss};
}

Simplex NelderMeadState::simplex_anywhere(std::size_t slot, std::int32_t start) const {
    RandomStream random(plan_.seed, Purpose::breeding_state,
                        (static_cast<std::uint64_t>(plan_.island) << 32U) + static_cast<std::uint64_t>(slot),
                        static_cast<std::uint32_t>(start));
    return simplex_around(random_point(plan_.space.size(), random), std::nullopt);
}

/// Starts a simplex again. If a result from another source is better than all results of simplices, the simplex starts
/// around that result. Otherwise, if the simplex has improved since its last start, it starts around its own best
/// point. In all other cases, the simplex starts at a random point.
void NelderMeadState::begin_again(std::size_t slot) {
    Slot& one = slots_[slot];
    ++one.start;
    const Simplex::Vertex best = one.simplex.best();
    if (from_elsewhere_ && *from_elsewhere_->loss < best_loss_) {
        one.simplex = simplex_around(from_elsewhere_->point, from_elsewhere_->loss);
        one.best_before = *from_elsewhere_->loss;
        from_elsewhere_.reset();
    } else if (best.loss && *best.loss < one.best_before) {
        one.best_before = *best.loss;
        one.simplex = simplex_around(best.point, best.loss);
    } else {
        one.best_before = std::numeric_limits<double>::infinity();
        one.simplex = simplex_anywhere(slot, one.start);
    }
}

void NelderMeadState::take(const Individual& individual, bool born_here) {
    const double loss = comparable_loss(individual);
    const UnitGenome place = to_unit(plan_.space, individual.genome);
    if (!born_here || individual.bred_by != Operator::simplex) {
        if (loss < best_loss_ && (!from_elsewhere_ || loss < *from_elsewhere_->loss)) {
            from_elsewhere_ = {place, loss};
        }
        const bool is_guess = born_here && individual.bred_by == Operator::given && loss < best_loss_;
        if (is_guess && (slots_.empty() || slots_.front().start == 0)) {
            if (slots_.empty()) {
                slots_.push_back({simplex_anywhere(0, 0)});
            }
            slots_.front().simplex = simplex_around(place, loss);
            best_loss_ = loss;
            from_elsewhere_.reset();
        }
        return;
    }
    const std::int32_t number = individual.breeding.slot;
    if (number < 0 || static_cast<std::size_t>(number) >= most_slots) {
        return;
    }
    best_loss_ = std::min(best_loss_, loss);
    const auto slot = static_cast<std::size_t>(number);
    while (slots_.size() <= slot) {
        slots_.push_back({simplex_anywhere(slots_.size(), 0)});
    }
    const auto taken = slots_[slot].simplex.take(
        place, loss, [&](const UnitGenome& wanted) { return means(plan_.space, wanted, individual.genome, place); });
    if (taken && slots_[slot].simplex.has_ended()) {
        begin_again(slot);
    }
    by_best_.resize(slots_.size());
    std::iota(by_best_.begin(), by_best_.end(), std::size_t{0});
    const auto best = [this](std::size_t i) {
        return slots_[i].simplex.best().loss.value_or(std::numeric_limits<double>::infinity());
    };
    std::stable_sort(by_best_.begin(), by_best_.end(), [&](std::size_t a, std::size_t b) { return best(a) < best(b); });
}

Offspring NelderMeadState::breed(const Stage& stage, const std::vector<const Individual*>& in_training,
                                 RandomStream& random) const {
    Offspring offspring;
    offspring.breeding.budget_used = stage.budget_used;
    if (free_.empty()) {
        offspring.genome = random_genome(plan_.space, random);
        return offspring;
    }
    using Open = std::pair<std::int32_t, Genome>;
    std::set<Open> running;
    for (const Individual* individual : in_training) {
        if (individual->bred_by == Operator::simplex) {
            running.emplace(individual->breeding.slot, individual->genome);
        }
    }
    const auto open_of = [&](std::size_t slot) {
        std::vector<Open> open;
        for (const UnitGenome& point :
             slot < slots_.size() ? slots_[slot].simplex.open_points() : simplex_anywhere(slot, 0).open_points()) {
            Open one{static_cast<std::int32_t>(slot), from_unit(plan_.space, point)};
            if (!running.contains(one)) {
                open.push_back(std::move(one));
            }
        }
        return open;
    };
    // The first births are assigned by their number, because no worker knows the births of the others yet.
    const std::uint64_t vertices = free_.size() + 1;
    const auto dealt = static_cast<std::size_t>(stage.births / vertices);
    std::vector<Open> open;
    if (stage.births < static_cast<std::uint64_t>(plan_.workers) && dealt >= slots_.size()) {
        open = open_of(dealt);
    }
    // The best simplex is served first, and the others get the remaining workers.
    for (std::size_t i = 0; i < by_best_.size() && open.empty(); ++i) {
        open = open_of(by_best_[i]);
    }
    for (std::size_t slot = slots_.size(); slot < most_slots && open.empty(); ++slot) {
        open = open_of(slot);
    }
    if (open.empty()) {
        offspring.genome = random_genome(plan_.space, random);
        return offspring;
    }
    Open& chosen = open[static_cast<std::size_t>(random.below(open.size()))];
    offspring.genome = std::move(chosen.second);
    offspring.bred_by = Operator::simplex;
    offspring.breeding.slot = chosen.first;
    return offspring;
}

std::unique_ptr<Propagator> make(const NelderMeadOptions& options, const Space& space, std::uint64_t seed) {
    static_cast<void>(NelderMeadState({.space = space, .options = options}));  // throws if the space is not supported
    return std::make_unique<FoldingPropagator<NelderMeadState, NelderMeadOptions>>(options, space, seed);
}

}  // namespace finch::search
