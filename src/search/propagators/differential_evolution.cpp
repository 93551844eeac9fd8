#include "evolution.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

// The algorithm is L-SHADE without generations (Tanabe and Fukunaga, "Improving the search performance of SHADE using
// linear population size reduction", CEC 2014). A trial competes with the member that holds its slot when the trial's
// result arrives.
namespace finch::search {
namespace {

constexpr std::size_t memory_size = 6;    ///< H
constexpr double best_share = 0.11;       ///< p
constexpr double archive_share = 1.4;     ///< archive size as a fraction of the number of members
constexpr double evaluations_each = 650;  ///< evaluations of the phase per member
constexpr std::size_t least_members = 6;
constexpr double most_tries_log2 = 7;  ///< of the tries per gene of an additive model
constexpr double spread = 0.25;        ///< around a centre, as a fraction of the range

std::size_t size_for(double evaluations, std::size_t genes) {
    const double most = std::max(18.0 * static_cast<double>(genes), 20.0);
    return static_cast<std::size_t>(std::clamp(evaluations / evaluations_each, 20.0, most));
}

double cauchy(double middle, double scale, RandomStream& random) {
    return middle + scale * std::tan(std::numbers::pi * (random.uniform() - 0.5));
}

bool same_values(const Space& space, const UnitGenome& a, const UnitGenome& b) {
    return from_unit(space, a) == from_unit(space, b);
}

std::size_t one_of(const std::vector<std::size_t>& genes, RandomStream& random) {
    return genes[static_cast<std::size_t>(random.below(genes.size()))];
}

}  // namespace

DifferentialEvolution::DifferentialEvolution(const Space& space, double evaluations, UnitGenome centre)
    : scale_factors_(memory_size, 0.5),
      crossover_rates_(memory_size, 0.5),
      free_(free_genes(space)),
      size_(size_for(evaluations, free_.size())),
      centre_(std::move(centre)) {}

DifferentialEvolution::DifferentialEvolution(const Space& space, std::vector<Member> members)
    : DifferentialEvolution(space, 0, {}) {
    members_ = std::move(members);
}

UnitGenome DifferentialEvolution::first_point(const Space& space, RandomStream& random) const {
    UnitGenome point = random_point(space.size(), random);
    if (!centre_.empty()) {
        for (std::size_t i = 0; i < point.size(); ++i) {
            if (!is_choice(space.genes[i])) {
                point[i] = reflect(centre_[i] + spread * (2 * point[i] - 1));
            } else if (random.uniform() < 0.5) {
                point[i] = centre_[i];
            }
        }
    }
    return point;
}

Offspring DifferentialEvolution::trial(const Space& space, RandomStream& random) const {
    const auto drawn = [&random](std::size_t count) { return static_cast<std::size_t>(random.below(count)); };
    const std::size_t count = members_.size();
    const std::size_t target = drawn(count);
    const std::size_t memory = drawn(memory_size);
    double scale = 0;
    while (scale <= 0) {
        scale = cauchy(scale_factors_[memory], 0.1, random);
    }
    scale = std::min(scale, 1.0);
    const double rate = std::clamp(crossover_rates_[memory] + 0.1 * random.normal(), 0.0, 1.0);
    const auto leading =
        std::max<std::size_t>(2, static_cast<std::size_t>(std::lround(best_share * static_cast<double>(count))));
    const Member& leader = members_[drawn(leading)];
    const UnitGenome& best = leader.point;
    std::size_t first = target;
    while (first == target) {
        first = drawn(count);
    }
    std::size_t second = target;
    while (second == target || second == first) {
        second = drawn(count + archive_.size());
    }
    const UnitGenome& from = members_[target].point;
    const UnitGenome& plus = members_[first].point;
    const UnitGenome& minus = second < count ? members_[second].point : archive_[second - count];

    UnitGenome point = from;
    const std::size_t always = one_of(free_, random);
    bool has_discrete = false;
    for (std::size_t i = 0; i < point.size(); ++i) {
        has_discrete = has_discrete || value_count(space.genes[i]).has_value();
        if (i != always && random.uniform() >= rate) {
            continue;
        }
        if (is_choice(space.genes[i])) {
            const double which = random.uniform();
            point[i] = which < scale / 2 ? best[i] : which < scale ? plus[i] : from[i];
            continue;
        }
        const double moved = from[i] + scale * (best[i] - from[i]) + scale * (plus[i] - minus[i]);
        // An out-of-bounds coordinate is replaced by a uniformly random one between the parent's coordinate and the
        // bound.
        point[i] = moved < 0 ? from[i] * random.uniform() : moved > 1 ? 1 - (1 - from[i]) * random.uniform() : moved;
    }
    if (has_discrete) {
        vary_copy(space, point, random);
    }
    return {.genome = child_genome(space, point, from, random),
            .parents = {members_[target].id, leader.id},
            .bred_by = Operator::differential_evolution,
            .breeding = {.slot = members_[target].slot, .scale_factor = scale, .crossover_rate = rate}};
}

Offspring DifferentialEvolution::mutant(const Space& space, RandomStream& random) const {
    const auto drawn = [&] { return static_cast<std::size_t>(random.below(members_.size())); };
    const Member& parent = members_[std::min(drawn(), drawn())];
    UnitGenome point = parent.point;
    Id second;
    if (random.uniform() < 0.5) {
        const Member& other = members_[drawn()];
        second = other.id;
        for (std::size_t i = 0; i < point.size(); ++i) {
            point[i] = random.uniform() < 0.5 ? other.point[i] : point[i];
        }
    }
    const Genome before = from_unit(space, parent.point);
    bool is_changed = false;  // whether an active gene has changed
    for (int attempt = 0; attempt < 20 && !is_changed; ++attempt) {
        for (const std::size_t i : free_) {
            if (random.uniform() * static_cast<double>(free_.size()) < 1) {
                point[i] = mutate_unit(space.genes[i], point[i], 16, 0.1, random);
            }
        }
        is_changed = from_unit(space, point) != before;
    }
    return {.genome = child_genome(space, point, parent.point, random),
            .parents = {parent.id, second},
            .bred_by = Operator::crossover,
            .breeding = {.slot = parent.slot}};
}

void DifferentialEvolution::vary_copy(const Space& space, UnitGenome& point, RandomStream& random) const {
    if (std::any_of(members_.begin(), members_.end(),
                    [&](const Member& member) { return same_values(space, member.point, point); })) {
        const std::size_t i = one_of(free_, random);
        point[i] = mutate_unit(space.genes[i], point[i], 8, 0.1, random);
    }
}

Offspring DifferentialEvolution::modelled(const Space& space, const AdditiveModel& model, RandomStream& random) const {
    const auto drawn = [&] { return static_cast<std::size_t>(random.below(members_.size())); };
    const Member& parent = members_[std::min(drawn(), drawn())];
    UnitGenome point = parent.point;
    const int tries = static_cast<int>(std::exp2(most_tries_log2 * random.uniform()));
    const double rate = random.uniform();
    const std::size_t always = one_of(free_, random);
    for (const std::size_t i : free_) {
        if (i == always || random.uniform() < rate) {
            point[i] = model.draw(space, i, tries, random);
        }
    }
    vary_copy(space, point, random);
    return {.genome = child_genome(space, point, parent.point, random),
            .parents = {parent.id, Id{}},
            .bred_by = Operator::additive_model,
            .breeding = {.slot = parent.slot}};
}

void DifferentialEvolution::insert(Member member) {
    const auto place = std::upper_bound(members_.begin(), members_.end(), member,
                                        [](const Member& a, const Member& b) { return a.loss < b.loss; });
    members_.insert(place, std::move(member));
    is_filled_ = is_filled_ || members_.size() >= size_;
}

void DifferentialEvolution::take(Member member, const Breeding& breeding, double done, RandomStream& random) {
    if (breeding.slot < 0) {
        insert(std::move(member));
        if (members_.size() > size_) {
            members_.pop_back();
        }
        return;
    }
    if (members_.empty()) {
        insert(std::move(member));
        return;
    }
    auto rival =
        std::find_if(members_.begin(), members_.end(), [&](const Member& one) { return one.slot == breeding.slot; });
    rival = rival == members_.end() ? std::prev(members_.end()) : rival;
    const bool is_there =
        std::any_of(members_.begin(), members_.end(), [&](const Member& one) { return one.point == member.point; });
    if (member.loss <= rival->loss && !is_there) {
        if (member.loss < rival->loss) {
            archive_.push_back(rival->point);
            // If a complete training beats a pruned one, the amount of the gain is unknown.
            if (breeding.scale_factor > 0 && rival->loss < least_pruned) {
                successes_.push_back({breeding.scale_factor, breeding.crossover_rate, rival->loss - member.loss});
            }
        }
        member.slot = rival->slot;
        members_.erase(rival);
        insert(std::move(member));
        while (static_cast<double>(archive_.size()) > archive_share * static_cast<double>(members_.size())) {
            archive_.erase(archive_.begin() + static_cast<std::ptrdiff_t>(random.below(archive_.size())));
        }
    }
    if (++since_learning_ >= members_.size()) {
        since_learning_ = 0;
        learn();
        shrink(done);
    }
}

/// Replaces the oldest entry of the parameter memory by the mean of the successful parameters, weighted by their gain
/// (Lehmer mean).
void DifferentialEvolution::learn() {
    double gains = 0;
    double scale = 0;
    double scale_squared = 0;
    double rate = 0;
    double rate_squared = 0;
    for (const Success& success : successes_) {
        gains += success.gain;
        scale += success.gain * success.scale_factor;
        scale_squared += success.gain * success.scale_factor * success.scale_factor;
        rate += success.gain * success.crossover_rate;
        rate_squared += success.gain * success.crossover_rate * success.crossover_rate;
    }
    successes_.clear();
    if (gains > 0) {
        scale_factors_[memory_at_] = scale_squared / scale;
        crossover_rates_[memory_at_] = rate > 0 ? rate_squared / rate : 0;
        memory_at_ = (memory_at_ + 1) % memory_size;
    }
}

void DifferentialEvolution::shrink(double done) {
    const double size = static_cast<double>(size_);
    const double left = size - (size - static_cast<double>(least_members)) * std::clamp(done, 0.0, 1.0);
    const auto most = std::max(least_members, static_cast<std::size_t>(std::lround(left)));
    if (is_filled() && members_.size() > most) {
        members_.resize(most);
    }
}

void DifferentialEvolution::inject(Member member, Id instead) {
    if (std::any_of(members_.begin(), members_.end(), [&](const Member& one) { return one.point == member.point; })) {
        return;
    }
    const auto left = instead == Id{} ? members_.end()
                                      : std::find_if(members_.begin(), members_.end(),
                                                     [&](const Member& one) { return one.id == instead; });
    const bool has_room = !is_filled() && members_.size() < size_;
    if (left != members_.end()) {
        members_.erase(left);
    } else if (!has_room) {
        if (member.loss >= members_.back().loss) {
            return;
        }
        members_.pop_back();
    }
    insert(std::move(member));
}

}  // namespace finch::search
