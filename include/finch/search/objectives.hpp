#pragma once

#include "finch/search/individual.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace finch::search {

/// Costs that can be minimised in addition to the loss. cost_of() returns their values.
enum class Cost : std::uint8_t { parameters, seconds, joules };
constexpr std::array<std::string_view, 3> words_of(Cost) {
    return {"parameters", "seconds", "joules"};
}

/// Returns the cost of an individual; smaller is better. Returns infinity for joules that are not known.
[[nodiscard]] double cost_of(Cost cost, const Individual& individual) noexcept;

/// Sorts `individuals` by non-dominated sorting and crowding distance as in NSGA-II (Deb, Pratap, Agarwal and Meyarivan
/// 2002). The loss is the first objective. Individuals are ordered by front, within a front by decreasing crowding
/// distance, then by better(). Returns whole fronts until they have at least `count` individuals, or all individuals if
/// there are fewer. All individuals must have a comparable loss; their input order does not matter. Takes O(n log n)
/// time for one cost. For more costs, it takes O(n log n) comparisons of an individual with a front.
[[nodiscard]] std::vector<const Individual*> ranked_by_objectives(std::vector<const Individual*> individuals,
                                                                  std::span<const Cost> costs, std::size_t count);

/// Returns the individuals that are not dominated by any other, in the order of better(). An individual dominates
/// another if its loss and all its `costs` are smaller or equal, and at least one of them is smaller. All individuals
/// must have a comparable loss.
[[nodiscard]] std::vector<const Individual*> pareto_front(std::vector<const Individual*> individuals,
                                                          std::span<const Cost> costs);

}  // namespace finch::search
