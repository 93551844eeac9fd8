#pragma once

#include "finch/search/costs.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace finch::search {

/// The values of an individual's objectives: the loss, then the costs. Smaller is better; unused values are 0.
struct ObjectiveValues {
    Id id;
    std::array<double, 1 + most_costs> values{};
};
[[nodiscard]] ObjectiveValues point_of(const Individual& individual, std::span<const Cost> costs);

/// Sorts `individuals` by non-dominated sorting and crowding distance as in NSGA-II (Deb, Pratap, Agarwal and Meyarivan
/// 2002). The loss is the first objective. Individuals are ordered by front, within a front by decreasing crowding
/// distance, then by better(). Individuals that were pruned, break search.limits or have a cost that is not finite come
/// behind all others, in the order of better(). Returns whole fronts until they have at least `count` individuals, or
/// all individuals if there are fewer. All individuals must have a comparable loss; their input order does not matter.
/// Takes O(n log n) time for one cost. For more costs, it takes O(n log n) comparisons of an individual with a front.
[[nodiscard]] std::vector<const Individual*> ranked_by_objectives(std::vector<const Individual*> individuals,
                                                                  std::span<const Cost> costs, std::size_t count);

/// Returns the individuals that are not dominated by any other, in the order of better(), without those that were
/// pruned, break search.limits or have a cost that is not finite. An individual dominates another if its loss and all
/// its `costs` are smaller or equal, and at least one of them is smaller. All individuals must have a comparable loss.
[[nodiscard]] std::vector<const Individual*> pareto_front(std::vector<const Individual*> individuals,
                                                          std::span<const Cost> costs);

/// Returns whether `own` is in the first front of `points`, or among the best `count` by front and crowding distance,
/// in their first `objectives` values (as in Schmucker et al., "Multi-objective Asynchronous Successive Halving",
/// 2021).
[[nodiscard]] bool is_among_best(std::vector<ObjectiveValues> points, std::size_t objectives, Id own,
                                 std::size_t count);

/// Returns the volume between `reference` and the points that dominate it, in as many objectives as `reference` has.
/// Points outside of the reference count nothing. Slices the volume along the last objective (Zitzler 2001): O(n²) for
/// three objectives.
[[nodiscard]] double hypervolume(std::vector<ObjectiveValues> points, std::span<const double> reference);

/// The hypervolume of a front as a share of the box between the smallest values of the front and the reference point,
/// which is the largest values of the front, and a tenth of its range more.
struct FrontVolume {
    double share = 0;
    std::vector<double> reference;  ///< the values as they are reported
};
/// Returns nothing if all individuals of the front agree in an objective.
[[nodiscard]] std::optional<FrontVolume> volume_of(std::span<const Individual* const> front,
                                                   std::span<const Cost> costs);

}  // namespace finch::search
