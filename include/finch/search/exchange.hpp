#pragma once

#include "finch/search/population.hpp"

#include <array>
#include <span>
#include <string_view>
#include <vector>

namespace finch::search {

/// Islands to which an island sends. all: all others. ring: the next. torus: its four neighbours on a grid, as square
/// as possible and closed at its edges. star: island 0 to all others, these to island 0. random: one other. nodes: all
/// whose first leader is on the same node; the first of each node also to the first of the next. matrix: each other
/// with its own probability.
enum class Topology { all, ring, torus, star, random, nodes, matrix };
constexpr std::array<std::string_view, 7> words_of(Topology) {
    return {"all", "ring", "torus", "star", "random", "nodes", "matrix"};
}

/// Choice of emigrants: the best; any, with equal probability; the better of two, drawn for each.
enum class Emigrants { best, random, tournament };
constexpr std::array<std::string_view, 3> words_of(Emigrants) {
    return {"best", "random", "tournament"};
}

struct ExchangeOptions {
    ExchangeKind kind = ExchangeKind::pollination;
    Topology topology = Topology::all;
    double probability = 0.9;   ///< of an exchange per island and round of its workers (one evaluation of each)
    std::int64_t migrants = 1;  ///< individuals per target island and exchange
    Emigrants emigrants = Emigrants::best;
    std::vector<std::vector<double>> matrix{};  ///< Topology::matrix: [from][to], probabilities; the diagonal is unused
    std::vector<int> node_of_island{};          ///< Topology::nodes: numbered; empty: all on one
};

/// The live leaders of one island, as worker indices.
struct IslandLeaders {
    int island = 0;
    std::vector<std::int32_t> workers;
};

/// The one of `workers` that may write the home register of `id`: the largest hash of (id, worker) (rendezvous hashing,
/// Thaler and Ravishankar 1998). So all agree, and a change of workers moves few. `workers` must not be empty.
[[nodiscard]] std::int32_t register_writer(Id id, std::span<const std::int32_t> workers);

/// Messages that the worker `self` of `leaders.island` sends after one of its evaluations, with probability
/// options.probability / (number of the island's workers). Migration: Moves of disjoint shares of emigrants among those
/// that live here and whose register this worker may write; none if there are too few. Pollination: Copies of the same
/// `migrants` emigrants of the island, or as many as there are, to each target that is not known to have them.
[[nodiscard]] std::vector<Record> plan_exchange(const ExchangeOptions& options, const Population& population,
                                                const IslandLeaders& leaders, std::int32_t self, RandomStream& random);

/// The islands that `island` of `islands` sends to at one exchange. Throws Error if the matrix or the nodes are of
/// fewer islands.
[[nodiscard]] std::vector<int> exchange_targets(const ExchangeOptions& options, int island, int islands,
                                                RandomStream& random);

/// Exchange sends no others than so many of an island's best.
[[nodiscard]] std::size_t exchange_depth(const ExchangeOptions& options) noexcept;

}  // namespace finch::search
