#pragma once

#include "finch/search/population.hpp"

#include <array>
#include <span>
#include <string_view>
#include <vector>

namespace finch::search {

/// Which islands send to which: all to all others, or each to the next.
enum class Topology { all, ring };
constexpr std::array<std::string_view, 2> words_of(Topology) {
    return {"all", "ring"};
}

struct ExchangeOptions {
    ExchangeKind kind = ExchangeKind::pollination;
    Topology topology = Topology::all;
    double probability = 0.9;   ///< of an exchange per island and round of its workers (one evaluation of each)
    std::int64_t migrants = 1;  ///< individuals per target island and exchange
};

/// The live leaders of one island, as worker indices.
struct IslandLeaders {
    int island = 0;
    std::vector<std::int32_t> workers;
};

/// Which of `workers` alone may write the home register of `id`: the largest hash of (id, worker) (rendezvous hashing,
/// Thaler and Ravishankar 1998), so all agree and a change of workers moves few. `workers` must not be empty.
[[nodiscard]] std::int32_t register_writer(Id id, std::span<const std::int32_t> workers);

/// What the worker `self` of `leaders.island` sends after one of its evaluations: nothing, or Moves (migration:
/// disjoint shares of the best that live here and whose register this worker may write; none where there are too few)
/// or Copies (pollination: the best `migrants` of the island, or as many as there are, to each target that is not known
/// to have them). With probability options.probability / (number of the island's workers).
[[nodiscard]] std::vector<Record> plan_exchange(const ExchangeOptions& options, const Population& population,
                                                const IslandLeaders& leaders, std::int32_t self, RandomStream& random);

/// The islands that `island` of `islands` sends to.
[[nodiscard]] std::vector<int> exchange_targets(Topology topology, int island, int islands);

}  // namespace finch::search
