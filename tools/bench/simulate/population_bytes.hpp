#pragma once

#include "finch/search/population.hpp"

#include <cstddef>

namespace finch::simulate {

/// What a population takes in memory, estimated from the sizes of what it holds and of the nodes of its maps and sets.
[[nodiscard]] std::size_t population_bytes(const search::Population& population);

}  // namespace finch::simulate
