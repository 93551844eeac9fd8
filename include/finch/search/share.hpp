#pragma once

#include "finch/search/population.hpp"

#include <vector>

namespace finch::search {

/// Returns, for each island of `population`, the individuals that its leaders must know at the start of a run: all
/// individuals that are active or were born there (finished or not), and the best of all islands. Leaders breed from no
/// other individuals. Individuals that arrive from other islands later are announced by messages.
[[nodiscard]] std::vector<std::vector<const Individual*>> needed_by_islands(const Population& population);

/// write_known() appends an individual to `out`, with its home and its memberships, but without its learning curve.
/// merge_known() reads these data and merges them into `population`.
void write_known(const Population& population, const Individual& individual, Bytes& out);
void merge_known(ByteReader& reader, Population& population);

}  // namespace finch::search
