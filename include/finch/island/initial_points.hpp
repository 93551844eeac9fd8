#pragma once

#include "finch/island/leases.hpp"
#include "finch/search/population.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace finch::island {

/// Which individual of a start takes which of the initial points that are left (search::InitialDesign): the `bred`-th
/// of `worker` (from 0) the (bred · workers + worker)-th of them, if there are so many.
[[nodiscard]] std::optional<std::uint32_t> initial_point_of(std::span<const std::uint32_t> left, std::uint32_t bred,
                                                            std::uint32_t worker, int workers);

/// Which of 0 … initial_points − 1 no individual of the `earlier` starts took, by what is known of these, all in
/// `population`: each is taken once, on whatever workers a run resumes.
[[nodiscard]] std::vector<std::uint32_t> initial_points_left(const search::Population& population,
                                                             std::span<const EarlierStart> earlier,
                                                             std::uint32_t initial_points);

}  // namespace finch::island
