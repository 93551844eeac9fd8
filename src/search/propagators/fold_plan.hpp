#pragma once

#include "finch/search/gene.hpp"

#include <cstdint>

namespace finch::search {

/// What a folded state follows from beside the results.
template <class Options>
struct FoldPlan {
    Space space;
    std::uint64_t seed = 1;
    Options options = {};
    int island = 0;                ///< each begins with other points
    std::int32_t workers = 1;      ///< of the island
    std::int64_t evaluations = 0;  ///< of the island; 0: not known
};

}  // namespace finch::search
