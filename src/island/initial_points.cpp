#include "finch/island/initial_points.hpp"

#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace finch::island {

std::optional<std::uint32_t> initial_point_of(std::span<const std::uint32_t> left, std::uint32_t bred,
                                              std::uint32_t worker, int workers) {
    const auto birth = std::uint64_t{bred} * static_cast<std::uint64_t>(workers) + worker;
    return birth < left.size() ? std::optional(left[birth]) : std::nullopt;
}

std::vector<std::uint32_t> initial_points_left(const search::Population& population,
                                               std::span<const EarlierStart> earlier, std::uint32_t initial_points) {
    std::vector<std::uint32_t> left(initial_points);
    std::iota(left.begin(), left.end(), 0U);
    std::map<std::uint32_t, int> workers;
    for (const EarlierStart& start : earlier) {
        workers[start.restart] = start.workers;
    }
    const auto& all = population.individuals();
    for (const auto& [restart, count] : workers) {
        std::set<std::uint32_t> taken;
        auto one = all.lower_bound(search::Id::make(restart, 0, 0));
        while (one != all.end() && one->first.restart() == restart) {
            const search::Id id = one->first;
            const auto initial_point = initial_point_of(left, id.sequence() - 1, id.worker(), count);
            if (!initial_point) {  // none is left for this worker's later individuals either
                if ((id.value | 0xFFFFFFFF) == std::numeric_limits<std::uint64_t>::max()) {
                    break;
                }
                one = all.lower_bound(search::Id{(id.value | 0xFFFFFFFF) + 1});
                continue;
            }
            if (!one->second.is_repeat()) {
                taken.insert(*initial_point);
            }
            ++one;
        }
        std::erase_if(left, [&](std::uint32_t initial_point) { return taken.contains(initial_point); });
    }
    return left;
}

}  // namespace finch::island
