#include "finch/search/objectives.hpp"

#include "finch/search/population.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace finch::search {
namespace {

/// Points in a space of `objectives` dimensions.
class Points {
public:
    Points(std::vector<ObjectiveValues> points, std::size_t objectives)
        : points_(std::move(points)), objectives_(objectives) {}

    [[nodiscard]] std::size_t size() const noexcept { return points_.size(); }
    [[nodiscard]] std::size_t objectives() const noexcept { return objectives_; }
    [[nodiscard]] Id id(std::size_t point) const { return points_[point].id; }
    [[nodiscard]] double value(std::size_t point, std::size_t objective) const {
        return points_[point].values[objective];
    }

    /// Compares two points by the first objective in which they differ, then by id. An individual therefore comes
    /// before all individuals that it dominates.
    [[nodiscard]] bool before(std::size_t a, std::size_t b) const {
        return std::tie(points_[a].values, points_[a].id) < std::tie(points_[b].values, points_[b].id);
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
    std::vector<ObjectiveValues> points_;
    std::size_t objectives_;
};

using Front = std::vector<std::size_t>;

/// Returns a predicate: an individual is complete, keeps search.limits and has finite costs (a metric may be NaN).
auto may_be_in_front(std::span<const Cost> costs) {
    return [costs](const Individual* one) {
        const auto is_finite = [one](const Cost& cost) { return std::isfinite(cost_of(cost, *one)); };
        return one->outcome != Outcome::pruned && one->violation == 0 && std::ranges::all_of(costs, is_finite);
    };
}

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
            return at(a) != at(b) ? at(a) < at(b) : points.id(front[a]) < points.id(front[b]);
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

std::vector<ObjectiveValues> points_of(std::span<const Individual* const> individuals, std::span<const Cost> costs) {
    std::vector<ObjectiveValues> points;
    points.reserve(individuals.size());
    for (const Individual* individual : individuals) {
        points.push_back(point_of(*individual, costs));
    }
    return points;
}

/// Returns the places in `front` by decreasing crowding distance, then by value of the first objective, then by id.
Front by_crowding(const Points& points, const Front& front) {
    const std::vector<double> distances = crowding_distances(points, front);
    Front places(front.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
        return distances[a] != distances[b] ? distances[a] > distances[b] : points.before(front[a], front[b]);
    });
    return places;
}

}  // namespace

ObjectiveValues point_of(const Individual& individual, std::span<const Cost> costs) {
    ObjectiveValues point{individual.id, {individual.loss}};
    for (std::size_t i = 0; i < costs.size(); ++i) {
        point.values.at(i + 1) = cost_of(costs[i], individual);
    }
    return point;
}

std::vector<const Individual*> ranked_by_objectives(std::vector<const Individual*> individuals,
                                                    std::span<const Cost> costs, std::size_t count) {
    const auto behind = std::partition(individuals.begin(), individuals.end(), may_be_in_front(costs));
    std::vector<const Individual*> others(behind, individuals.end());
    individuals.erase(behind, individuals.end());
    const Points points(points_of(individuals, costs), 1 + costs.size());
    std::vector<const Individual*> ranked;
    for (const Front& front : sorted_fronts(points, count)) {
        for (const std::size_t place : by_crowding(points, front)) {
            ranked.push_back(individuals[front[place]]);
        }
    }
    if (ranked.size() < count) {
        std::sort(others.begin(), others.end(), [](const auto* a, const auto* b) { return better(*a, *b); });
        ranked.insert(ranked.end(), others.begin(), others.end());
    }
    return ranked;
}

std::vector<const Individual*> pareto_front(std::vector<const Individual*> individuals, std::span<const Cost> costs) {
    std::erase_if(individuals, std::not_fn(may_be_in_front(costs)));
    const Points points(points_of(individuals, costs), 1 + costs.size());
    std::vector<const Individual*> found;
    if (points.size() > 0) {
        const Front first = sorted_fronts(points, 1).front();
        for (const std::size_t point : first) {
            found.push_back(individuals[point]);
        }
        std::sort(found.begin(), found.end(), [](const auto* a, const auto* b) { return better(*a, *b); });
    }
    return found;
}

bool is_among_best(std::vector<ObjectiveValues> points, std::size_t objectives, Id own, std::size_t count) {
    const Points all(std::move(points), objectives);
    std::size_t before = 0;
    const std::vector<Front> fronts = sorted_fronts(all, all.size());
    for (const Front& front : fronts) {
        for (const std::size_t place : by_crowding(all, front)) {
            if (all.id(front[place]) == own) {
                return &front == &fronts.front() || before < count;
            }
            ++before;
        }
    }
    return false;
}

double hypervolume(std::vector<ObjectiveValues> points, std::span<const double> reference) {
    const std::size_t last = reference.size() - 1;
    std::erase_if(points, [&](const ObjectiveValues& point) {
        return !std::equal(reference.begin(), reference.end(), point.values.begin(), std::greater<>());
    });
    std::sort(points.begin(), points.end(), [last](const ObjectiveValues& a, const ObjectiveValues& b) {
        return a.values.at(last) < b.values.at(last);
    });
    double volume = 0;
    double base = 0;  // the volume of the points so far in all objectives but the last
    for (std::size_t i = 0; i < points.size(); ++i) {
        const double end = i + 1 < points.size() ? points[i + 1].values.at(last) : reference[last];
        if (last == 0) {
            return reference[0] - points[0].values[0];
        }
        base = last == 1 ? std::max(base, reference[0] - points[i].values[0])
                         : hypervolume({points.begin(), points.begin() + static_cast<std::ptrdiff_t>(i) + 1},
                                       reference.first(last));
        volume += base * (end - points[i].values.at(last));
    }
    return volume;
}

std::optional<FrontVolume> volume_of(std::span<const Individual* const> front, std::span<const Cost> costs) {
    std::vector<ObjectiveValues> points = points_of(front, costs);
    FrontVolume found;
    double box = 1;
    for (std::size_t i = 0; i <= costs.size(); ++i) {
        std::vector<double> values;
        for (const ObjectiveValues& point : points) {
            values.push_back(point.values.at(i));
        }
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        if (values.empty() || !(*least < *most && std::isfinite(*most))) {
            return std::nullopt;
        }
        found.reference.push_back(*most + 0.1 * (*most - *least));
        box *= found.reference.back() - *least;
    }
    found.share = hypervolume(std::move(points), found.reference) / box;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        found.reference[i + 1] *= costs[i].is_maximised ? -1 : 1;
    }
    return found;
}

}  // namespace finch::search
