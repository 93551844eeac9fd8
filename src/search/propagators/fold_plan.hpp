#pragma once

#include "finch/search/costs.hpp"
#include "finch/search/gene.hpp"

#include <cstdint>
#include <vector>

namespace finch::search {

/// The parameters of a propagator's State, which do not change during a search.
template <class Options>
struct FoldPlan {
    Space space;
    std::uint64_t seed = 1;
    Options options = {};
    int island = 0;                ///< each island begins with other points
    std::int32_t workers = 1;      ///< number of workers of the island
    std::int64_t evaluations = 0;  ///< expected number of evaluations of the island; 0: not known
    std::vector<Cost> costs = {};  ///< minimised in addition to the loss
};

}  // namespace finch::search
