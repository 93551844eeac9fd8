#include "finch/island/island_map.hpp"

#include <utility>

namespace finch::island {

IslandMap::IslandMap(std::vector<int> island_of_worker, int islands) : island_of_worker_(std::move(island_of_worker)) {
    for (int island = 0; island < islands; ++island) {
        leaders_.push_back({island, {}});
    }
    for (std::int32_t worker = 0; worker < workers(); ++worker) {
        leaders_.at(static_cast<std::size_t>(island_of(worker))).workers.push_back(worker);
    }
}

}  // namespace finch::island
