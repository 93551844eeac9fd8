#pragma once

#include "finch/island/leases.hpp"
#include "finch/search/population.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace finch::island {

/// The initial point of an individual: the `bred`-th individual of `worker` (from 0) takes the (bred · workers +
/// worker)-th of the points that are `left` (search::InitialDesign). Nothing if there are not so many.
[[nodiscard]] std::optional<std::uint32_t> initial_point_of(std::span<const std::uint32_t> left, std::uint32_t bred,
                                                            std::uint32_t worker, int workers);

/// The points among 0 … initial_points − 1 that no individual of the `earlier` starts took, by all of them that are
/// known, in `population`. So each is taken once, on whatever workers a run resumes.
[[nodiscard]] std::vector<std::uint32_t> initial_points_left(const search::Population& population,
                                                             std::span<const EarlierStart> earlier,
                                                             std::uint32_t initial_points);

}  // namespace finch::island
