#pragma once

#include "finch/island/leases.hpp"
#include "finch/search/population.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace finch::island {

/// Returns the initial point (search::InitialDesign) of the `bred`-th individual that `worker` breeds, counted from 0.
/// The point is entry bred · workers + worker of `left`, which lists the points that no individual has used yet.
/// Returns nothing if `left` is too short.
[[nodiscard]] std::optional<std::uint32_t> initial_point_of(std::span<const std::uint32_t> left, std::uint32_t bred,
                                                            std::uint32_t worker, int workers);

/// Returns the points among 0 … initial_points − 1 that no individual of the `earlier` starts used. `population`: all
/// known individuals of these starts. Each point is used only once, even if a run resumes with another number of
/// workers.
[[nodiscard]] std::vector<std::uint32_t> initial_points_left(const search::Population& population,
                                                             std::span<const EarlierStart> earlier,
                                                             std::uint32_t initial_points);

}  // namespace finch::island
