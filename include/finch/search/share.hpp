#pragma once

#include "finch/search/population.hpp"

#include <vector>

namespace finch::search {

/// For each island of `population`, the individuals that its leaders have to know at a start: those that are active or
/// were born there, finished or not, and the best of all. They breed from no others; of what comes from
/// other islands later they hear as in a first start.
[[nodiscard]] std::vector<std::vector<const Individual*>> needed_by_islands(const Population& population);

/// Appends an individual without its curve, with its home and its memberships; takes it in again.
void write_known(const Population& population, const Individual& individual, Bytes& out);
void merge_known(ByteReader& reader, Population& population);

}  // namespace finch::search
