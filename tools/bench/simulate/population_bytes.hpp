#pragma once

#include "finch/search/population.hpp"

#include <cstddef>

namespace finch::simulate {

/// Returns the estimated memory of a population, from the sizes of its individuals and of the nodes of its maps and
/// sets.
[[nodiscard]] std::size_t population_bytes(const search::Population& population);

}  // namespace finch::simulate
