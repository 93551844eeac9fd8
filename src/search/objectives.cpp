#include "finch/search/objectives.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace finch::search {
namespace {

/// A set of individuals, with the values of their objectives in one contiguous array.
class Points {
public:
    Points(std::vector<const Individual*> individuals, std::span<const Cost> costs)
        : individuals_(std::move(individuals)), objectives_(costs.size() + 1) {
        values_.reserve(individuals_.size() * objectives_);
        for (const Individual* individual : individuals_) {
            values_.push_back(individual->loss);
            for (const Cost cost : costs) {
                values_.push_back(cost_of(cost, *individual));
            }
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return individuals_.size(); }
    [[nodiscard]] std::size_t objectives() const noexcept { return objectives_; }
    [[nodiscard]] const Individual* individual(std::size_t point) const { return individuals_[point]; }
    [[nodiscard]] double value(std::size_t point, std::size_t objective) const {
        return values_[point * objectives_ + objective];
    }

    /// Compares two points by the first objective in which they differ, then by id. An individual therefore comes
    /// before all individuals that it dominates.
    [[nodiscard]] bool before(std::size_t a, std::size_t b) const {
        for (std::size_t i = 0; i < objectives_; ++i) {
            if (value(a, i) != value(b, i)) {
                return value(a, i) < value(b, i);
            }
        }
        return individuals_[a]->id < individuals_[b]->id;
    }

    [[nodiscard]] bool dominates(std::size_t a, std::size_t b) const {
        bool is_smaller = false;
        for (std::size_t i = 0; i < objectives_; ++i) {
            if (value(a, i) > value(b, i)) {
                return false;
            }
            is_smaller = is_smaller || value(a, i) < value(b, i);
        }
        return is_smaller;
    }

private:
    std::vector<const Individual*> individuals_;
    std::size_t objectives_;
    std::vector<double> values_;
};

using Front = std::vector<std::size_t>;

/// Returns whether a member of `front` dominates `point`. All members of `front` must come before `point` in the order
/// of Points::before(). With two objectives, the last member of the front has the smallest second objective, so only
/// this member is compared.
bool is_dominated(const Points& points, const Front& front, std::size_t point) {
    if (points.objectives() == 2) {
        return points.dominates(front.back(), point);
    }
    return std::any_of(front.rbegin(), front.rend(), [&](std::size_t other) { return points.dominates(other, point); });
}

/// Sorts points into fronts: each point goes to the first front that does not dominate it. The front is found by
/// bisection: if one front does not dominate the point, the later fronts do not either (ENS-BS, Zhang, Tian, Cheng and
/// Jin 2015). Drops fronts behind the first `count` individuals: fronts only grow.
std::vector<Front> sorted_fronts(const Points& points, std::size_t count) {
    Front order(points.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto before = [&](std::size_t a, std::size_t b) { return points.before(a, b); };
    if (!std::is_sorted(order.begin(), order.end(), before)) {
        std::sort(order.begin(), order.end(), before);
    }
    std::vector<Front> fronts;
    std::size_t kept = 0;
    for (const std::size_t point : order) {
        const auto front = std::partition_point(
            fronts.begin(), fronts.end(), [&](const Front& earlier) { return is_dominated(points, earlier, point); });
        if (front == fronts.end() && kept >= count) {
            continue;
        }
        (front != fronts.end() ? *front : fronts.emplace_back()).push_back(point);
        ++kept;
        while (fronts.size() > 1 && kept - fronts.back().size() >= count) {
            kept -= fronts.back().size();
            fronts.pop_back();
        }
    }
    return fronts;
}

/// Returns the crowding distance of each member of `front` (Deb et al. 2002, III.B). The crowding distance is the sum,
/// over all objectives, of the distance between the member's two neighbours as a fraction of the front's extent.
/// Members at the ends of the front have an infinite crowding distance.
std::vector<double> crowding_distances(const Points& points, const Front& front) {
    std::vector<double> distances(front.size(), 0);
    std::vector<std::size_t> places(front.size());
    for (std::size_t i = 0; i < points.objectives(); ++i) {
        const auto at = [&](std::size_t place) { return points.value(front[place], i); };
        std::iota(places.begin(), places.end(), std::size_t{0});
        std::sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
            return at(a) != at(b) ? at(a) < at(b) : points.individual(front[a])->id < points.individual(front[b])->id;
        });
        const double extent = at(places.back()) - at(places.front());
        for (std::size_t k = 1; extent > 0 && std::isfinite(extent) && k + 1 < places.size(); ++k) {
            distances[places[k]] += (at(places[k + 1]) - at(places[k - 1])) / extent;
        }
        distances[places.front()] = std::numeric_limits<double>::infinity();
        distances[places.back()] = std::numeric_limits<double>::infinity();
    }
    return distances;
}

}  // namespace

double cost_of(Cost cost, const Individual& individual) noexcept {
    static constexpr std::array<double (*)(const Individual&), words_of(Cost{}).size()> values{
        [](const Individual& one) { return static_cast<double>(one.parameters); },
        [](const Individual& one) { return one.training_seconds; },
        [](const Individual& one) {
            return std::isnan(one.joules) ? std::numeric_limits<double>::infinity() : one.joules;
        },
    };
    return values[static_cast<std::size_t>(cost)](individual);
}

std::vector<const Individual*> ranked_by_objectives(std::vector<const Individual*> individuals,
                                                    std::span<const Cost> costs, std::size_t count) {
    const Points points(std::move(individuals), costs);
    std::vector<const Individual*> ranked;
    for (const Front& front : sorted_fronts(points, count)) {
        const std::vector<double> distances = crowding_distances(points, front);
        std::vector<std::size_t> places(front.size());
        std::iota(places.begin(), places.end(), std::size_t{0});
        std::sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
            return distances[a] != distances[b] ? distances[a] > distances[b]
                                                : better(*points.individual(front[a]), *points.individual(front[b]));
        });
        for (const std::size_t place : places) {
            ranked.push_back(points.individual(front[place]));
        }
    }
    return ranked;
}

std::vector<const Individual*> pareto_front(std::vector<const Individual*> individuals, std::span<const Cost> costs) {
    const Points points(std::move(individuals), costs);
    std::vector<const Individual*> found;
    if (points.size() > 0) {
        const Front first = sorted_fronts(points, 1).front();
        for (const std::size_t point : first) {
            found.push_back(points.individual(point));
        }
        std::sort(found.begin(), found.end(), [](const auto* a, const auto* b) { return better(*a, *b); });
    }
    return found;
}

}  // namespace finch::search
