#include "finch/search/exchange.hpp"

#include "finch/base/error.hpp"

#include <algorithm>
#include <utility>

namespace finch::search {
namespace {

/// The finaliser of MurmurHash3 (Appleby): every input bit changes every output bit with probability one half.
std::uint64_t mix(std::uint64_t value) noexcept {
    value = (value ^ (value >> 33)) * 0xFF51AFD7ED558CCD;
    value = (value ^ (value >> 33)) * 0xC4CEB9FE1A85EC53;
    return value ^ (value >> 33);
}

/// The best individuals that live on the island and whose register `self` may write; `count` of them, or fewer if there
/// are fewer. Looks at no more of the island than it must.
std::vector<const Individual*> find_emigrants(const Population& population, const IslandLeaders& leaders,
                                              std::int32_t self, std::size_t count) {
    const std::size_t active = population.active(leaders.island);
    std::vector<const Individual*> found;
    std::size_t looked_at = 0;
    for (std::size_t window = 2 * count * leaders.workers.size(); found.size() < count && looked_at < active;
         window *= 2) {
        const auto best = population.best(leaders.island, window);
        for (; looked_at < best.size() && found.size() < count; ++looked_at) {
            if (register_writer(best[looked_at]->id, leaders.workers) == self) {
                found.push_back(best[looked_at]);
            }
        }
    }
    return found;
}

/// Disjoint shares, as chance deals them; nothing where there are too few for all targets.
std::vector<Record> plan_moves(const ExchangeOptions& options, const Population& population,
                               const IslandLeaders& leaders, std::int32_t self, RandomStream& random) {
    const auto targets = exchange_targets(options.topology, leaders.island, population.islands());
    const std::size_t count = static_cast<std::size_t>(options.migrants) * targets.size();
    const auto emigrants = find_emigrants(population, leaders, self, count);
    std::vector<Record> moves;
    if (emigrants.size() < count) {
        return moves;
    }
    const auto order = random.permutation(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i) {
        const Individual& emigrant = *emigrants[order[i]];
        const int target = targets[i / static_cast<std::size_t>(options.migrants)];
        moves.emplace_back(Move{emigrant, {population.home(emigrant.id).version + 1, self, target}});
    }
    return moves;
}

/// The best go to every target; a copy that is known to be there is not sent again.
std::vector<Record> plan_copies(const ExchangeOptions& options, const Population& population,
                                const IslandLeaders& leaders) {
    const auto emigrants = population.best(leaders.island, static_cast<std::size_t>(options.migrants));
    std::vector<Record> copies;
    for (const int target : exchange_targets(options.topology, leaders.island, population.islands())) {
        for (const Individual* emigrant : emigrants) {
            if (!population.is_member(emigrant->id, target)) {
                copies.emplace_back(Copy{*emigrant, target});
            }
        }
    }
    return copies;
}

}  // namespace

std::int32_t register_writer(Id id, std::span<const std::int32_t> workers) {
    if (workers.empty()) {
        throw Error("nobody can write a register of an island without workers");
    }
    const std::uint64_t key = mix(id.value);
    const auto weight = [key](std::int32_t worker) {
        return std::pair(mix(key ^ (static_cast<std::uint64_t>(worker) * 0x9E3779B97F4A7C15)), worker);
    };
    return *std::max_element(workers.begin(), workers.end(),
                             [&](std::int32_t a, std::int32_t b) { return weight(a) < weight(b); });
}

std::vector<Record> plan_exchange(const ExchangeOptions& options, const Population& population,
                                  const IslandLeaders& leaders, std::int32_t self, RandomStream& random) {
    if (options.kind == ExchangeKind::none || options.migrants < 1 || population.islands() < 2 ||
        leaders.workers.empty() ||
        !(random.uniform() < options.probability / static_cast<double>(leaders.workers.size()))) {
        return {};
    }
    return options.kind == ExchangeKind::migration ? plan_moves(options, population, leaders, self, random)
                                                   : plan_copies(options, population, leaders);
}

std::vector<int> exchange_targets(Topology topology, int island, int islands) {
    std::vector<int> targets;
    if (topology == Topology::ring) {
        if (islands > 1) {
            targets.push_back((island + 1) % islands);
        }
        return targets;
    }
    for (int target = 0; target < islands; ++target) {
        if (target != island) {
            targets.push_back(target);
        }
    }
    return targets;
}

}  // namespace finch::search
