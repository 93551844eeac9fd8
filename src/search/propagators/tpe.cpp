#include "tpe.hpp"

#include "finch/search/propagator.hpp"

#include "fold.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

namespace finch::search {
namespace {

constexpr std::size_t most_below = 25;
constexpr int redraws = 20;            ///< of a genome that is already known
constexpr int candidate_redraws = 50;  ///< of a candidate that violates a constraint
constexpr int most_violations = 20;    ///< number of drawn genomes per breeding that may violate a constraint

bool asks_alike(const Gene& a, const Gene& b) {
    return a.when == b.when && a.uses == b.uses;
}

/// Returns the free genes of `space` in groups with the same conditions and uses. A group comes after the genes to
/// which its conditions and uses refer. If uses refer to each other in a cycle, a group only comes after the genes to
/// which its conditions refer.
std::vector<std::vector<std::size_t>> grouped(const Space& space) {
    std::vector<bool> is_placed(space.size());
    for (std::size_t i = 0; i < space.size(); ++i) {
        is_placed[i] = is_fixed(space.genes[i]);
    }
    std::vector<std::vector<std::size_t>> groups;
    const std::vector<std::size_t> free = free_genes(space);
    while (true) {
        const auto are_placed = [&](const std::vector<Condition>& asked) {
            return std::all_of(asked.begin(), asked.end(), [&](const Condition& one) { return is_placed[one.gene]; });
        };
        const auto is_next = [&](std::size_t i) { return !is_placed[i] && are_placed(space.genes[i].when); };
        const auto is_decided = [&](std::size_t i) {
            return is_next(i) && std::all_of(space.genes[i].uses.begin(), space.genes[i].uses.end(), are_placed);
        };
        auto first = std::find_if(free.begin(), free.end(), is_decided);
        if (first == free.end()) {
            first = std::find_if(free.begin(), free.end(), is_next);
        }
        if (first == free.end()) {
            return groups;
        }
        std::vector<std::size_t>& group = groups.emplace_back();
        std::copy_if(first, free.end(), std::back_inserter(group),
                     [&](std::size_t i) { return !is_placed[i] && asks_alike(space.genes[i], space.genes[*first]); });
        for (const std::size_t i : group) {
            is_placed[i] = true;
        }
    }
}

class Tpe final : public Propagator {
public:
    Tpe(const TpeOptions& options, const Space& space)
        : startup_(static_cast<std::size_t>(options.startup)), state_(TpeState(options, space)) {}

    Offspring breed(const Population& population, int island, const Stage& stage, RandomStream& random) override {
        Offspring offspring =
            state_.over(population, island).breed(in_training_on(population, island), stage.constraints, random);
        offspring.breeding.budget_used = stage.budget_used;
        return offspring;
    }
    std::size_t population() const noexcept override { return std::size_t{1} << 30U; }  // all results of an island
    std::size_t first_points(std::int64_t /*evaluations*/) const noexcept override { return startup_; }
    bool looks_at_training() const noexcept override { return true; }

private:
    std::size_t startup_;
    Fold<TpeState> state_;
};

}  // namespace

TpeState::TpeState(const TpeOptions& options, Space space)
    : options_(options), space_(std::move(space)), groups_(grouped(space_)), active_(groups_.size()) {}

TpeState::Seen TpeState::seen(const Individual& individual) const {
    const std::vector<bool> active = active_genes(space_, individual.genome);
    Seen one{individual.genome, to_unit(space_, individual.genome), {}, standing(individual)};
    for (const auto& group : groups_) {
        one.active.push_back(active[group.front()]);
    }
    return one;
}

void TpeState::take(const Individual& individual, bool /*born_here*/) {
    seen_.push_back(seen(individual));
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        active_[group] += seen_.back().active[group] ? 1 : 0;
    }
    if (seen_.size() >= 2 * static_cast<std::size_t>(options_.most_points)) {
        forget();
    }
}

std::vector<std::size_t> TpeState::ranking(std::size_t group) const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        if (seen_[i].active[group]) {
            order.push_back(i);
        }
    }
    std::sort(order.begin(), order.end(),
              [this](std::size_t a, std::size_t b) { return better(seen_[a].standing, seen_[b].standing); });
    return order;
}

void TpeState::forget() {
    const auto most = static_cast<std::size_t>(options_.most_points);
    std::vector<bool> is_kept(seen_.size());
    std::fill(is_kept.end() - static_cast<std::ptrdiff_t>(most), is_kept.end(), true);
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        const std::vector<std::size_t> order = ranking(group);
        for (std::size_t place = 0; place < std::min(most_below, order.size()); ++place) {
            is_kept[order[place]] = true;
        }
    }
    std::vector<Seen> kept;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        if (is_kept[i]) {
            kept.push_back(std::move(seen_[i]));
        }
    }
    seen_ = std::move(kept);
}

TpeState::Split TpeState::split(std::size_t group) const {
    const std::vector<std::size_t> order = ranking(group);
    const auto share = static_cast<std::size_t>(std::ceil(options_.gamma * static_cast<double>(active_[group])));
    const std::size_t best = std::min({share, most_below, order.size()});
    const std::size_t most = static_cast<std::size_t>(options_.most_points);
    const std::size_t oldest = seen_.size() - std::min(seen_.size(), most);
    Split parts;
    for (std::size_t place = 0; place < order.size(); ++place) {
        const Seen& one = seen_[order[place]];
        if (place < best && one.standing.ranks_by_loss) {
            parts.below.push_back(&one.point);
        } else if (order[place] >= oldest) {
            parts.above.push_back(&one.point);
        }
    }
    return parts;
}

std::vector<TpeState::Model> TpeState::models(const std::vector<Seen>& in_training) const {
    std::vector<Model> found;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        Split parts = split(group);
        for (const Seen& one : in_training) {
            if (one.active[group]) {
                parts.above.push_back(&one.point);
            }
        }
        found.push_back({ParzenEstimator(space_, groups_[group], parts.below),
                         ParzenEstimator(space_, groups_[group], parts.above)});
    }
    return found;
}

Genome TpeState::draw(const std::vector<Model>& models, std::span<const Constraint> constraints,
                      RandomStream& random) const {
    Genome genome;
    std::vector<bool> is_drawn;
    for (const Gene& gene : space_.genes) {
        genome.push_back(first_value(gene));
        is_drawn.push_back(is_fixed(gene));
    }
    UnitGenome point(space_.size());
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        std::vector<bool> known = active_genes(space_, genome);
        if (!known[groups_[group].front()]) {
            continue;
        }
        for (const std::size_t gene : groups_[group]) {
            is_drawn[gene] = true;
        }
        std::transform(known.begin(), known.end(), is_drawn.begin(), known.begin(), std::logical_and<>());
        const auto place = [&](const UnitGenome& values) {
            for (const std::size_t gene : groups_[group]) {
                genome[gene] = from_unit(space_.genes[gene], values[gene]);
            }
        };
        // A constraint counts as satisfied as long as one of its genes is not yet drawn.
        const auto obeys = [&](const Constraint& constraint) { return constraint.holds(genome, known); };
        const auto is_allowed = [&] {
            place(point);
            return std::all_of(constraints.begin(), constraints.end(), obeys);
        };
        UnitGenome best;
        double most = 0;
        for (std::int64_t candidate = 0; candidate < options_.candidates; ++candidate) {
            bool found = false;
            for (int attempt = 0; attempt <= candidate_redraws && !found; ++attempt) {
                models[group].below.draw(point, random);
                found = is_allowed();
            }
            if (!found) {
                continue;
            }
            const double ratio = models[group].below.log_density(point) - models[group].above.log_density(point);
            if (best.empty() || ratio > most) {
                best = point;
                most = ratio;
            }
        }
        place(best.empty() ? point : best);
    }
    return draw_missing(space_, std::move(genome), std::move(is_drawn), random);
}

Offspring TpeState::breed(const std::vector<const Individual*>& in_training, std::span<const Constraint> constraints,
                          RandomStream& random) const {
    if (groups_.empty() || std::ssize(seen_) < options_.startup) {
        return {random_genome(space_, random), {}, Operator::random};
    }
    std::set<Genome> known;
    for (const Seen& one : seen_) {
        known.insert(one.genome);
    }
    std::vector<Seen> waiting;
    for (const Individual* individual : in_training) {
        waiting.push_back(seen(*individual));
        known.insert(individual->genome);
    }
    const std::vector<Model> group_models = models(waiting);
    int known_draws = 0;
    int violations = 0;
    while (known_draws < redraws && violations < most_violations) {
        Genome genome = draw(group_models, constraints, random);
        if (!all_hold(constraints, space_, genome)) {
            ++violations;
        } else if (known.contains(genome)) {
            ++known_draws;
        } else {
            return {std::move(genome), {}, Operator::parzen};
        }
    }
    return {random_genome(space_, random), {}, Operator::random};
}

std::unique_ptr<Propagator> make(const TpeOptions& options, const Space& space, std::uint64_t) {
    return std::make_unique<Tpe>(options, space);
}

}  // namespace finch::search
