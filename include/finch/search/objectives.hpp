#pragma once

#include "finch/search/individual.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace finch::search {

/// Costs that may be minimised beside the loss. cost_of() gives their values.
enum class Cost : std::uint8_t { parameters, seconds, joules };
constexpr std::array<std::string_view, 3> words_of(Cost) {
    return {"parameters", "seconds", "joules"};
}

/// The smaller the better; infinite where it is not known.
[[nodiscard]] double cost_of(Cost cost, const Individual& individual) noexcept;

/// Non-dominated sorting and crowding distance as in NSGA-II (Deb, Pratap, Agarwal and Meyarivan 2002), the loss being
/// the first objective: `individuals` by their rank (front), within a front by their crowding distance, the largest
/// first, then by better(). Whole fronts, until they are `count` or more; all of them if there are fewer. All must rank
/// by loss; their order does not matter. O(n log n) for one cost; for more, O(n log n) comparisons of an individual
/// with a front.
[[nodiscard]] std::vector<const Individual*> ranked_by_objectives(std::vector<const Individual*> individuals,
                                                                  std::span<const Cost> costs, std::size_t count);

/// The individuals of `individuals` that no other dominates, by better(). To dominate is to be smaller or equal in the
/// loss and all `costs`, and smaller in one. All must rank by loss.
[[nodiscard]] std::vector<const Individual*> pareto_front(std::vector<const Individual*> individuals,
                                                          std::span<const Cost> costs);

}  // namespace finch::search
