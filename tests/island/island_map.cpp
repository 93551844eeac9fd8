#include "finch/island/island_map.hpp"

#include <doctest/doctest.h>

namespace finch::island {

TEST_CASE("IslandMap: an island's leaders are its workers in ascending order; an island may have no workers") {
    const IslandMap map({2, 0, 0, 2, 0}, 4);

    CHECK(map.workers() == 5);
    CHECK(map.island_of(3) == 2);
    CHECK(map.leaders_of(0).workers == std::vector<std::int32_t>{1, 2, 4});
    CHECK(map.leaders_of(2).workers == std::vector<std::int32_t>{0, 3});
    CHECK(map.leaders_of(2).island == 2);
    CHECK(map.leaders_of(1).workers.empty());
    CHECK(map.leaders_of(3).workers.empty());
    CHECK_THROWS((void)map.leaders_of(4));
    CHECK_THROWS((void)IslandMap({0, 4}, 4));
}

}  // namespace finch::island
