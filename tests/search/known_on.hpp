#pragma once

#include "finch/search/share.hpp"

namespace finch::search {

/// Returns the part of the population `all` that the leaders of `island` must know at the start of a run.
inline Population known_on(const Population& all, int island) {
    Bytes bytes;
    const auto needed = needed_by_islands(all);
    for (const Individual* individual : needed[static_cast<std::size_t>(island)]) {
        write_known(all, *individual, bytes);
    }
    Population known(all.kind(), all.islands());
    ByteReader reader(bytes);
    while (reader.left() > 0) {
        merge_known(reader, known);
    }
    return known;
}

}  // namespace finch::search
