#pragma once

#include "finch/search/exchange.hpp"

#include <cstdint>
#include <vector>

namespace finch::island {

/// The workers of each island. Immutable: all workers of a simulation share one IslandMap.
class IslandMap {
public:
    /// `island_of_worker`: the island of each worker, below `islands`. An island may have no workers.
    IslandMap(std::vector<int> island_of_worker, int islands);

    [[nodiscard]] int workers() const noexcept { return static_cast<int>(island_of_worker_.size()); }
    [[nodiscard]] int islands() const noexcept { return static_cast<int>(leaders_.size()); }
    [[nodiscard]] int island_of(std::int32_t worker) const {
        return island_of_worker_.at(static_cast<std::size_t>(worker));
    }
    /// Returns the leaders of `island` in the order of workers.
    [[nodiscard]] const search::IslandLeaders& leaders_of(int island) const {
        return leaders_.at(static_cast<std::size_t>(island));
    }

private:
    std::vector<int> island_of_worker_;
    std::vector<search::IslandLeaders> leaders_;  ///< by island
};

}  // namespace finch::island
