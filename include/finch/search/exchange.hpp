#pragma once

#include "finch/search/population.hpp"

#include <array>
#include <span>
#include <string_view>
#include <vector>

namespace finch::search {

/// The islands to which an island sends individuals:
/// - all: all other islands.
/// - ring: the next island.
/// - torus: the four neighbours on a grid that is as square as possible and wraps around at its edges.
/// - star: island 0 sends to all others, and all others send to island 0.
/// - random: one other island, drawn at random.
/// - nodes: all islands on the same node (by their first leader); the first island of a node also sends to the first
///   island of the next node.
/// - matrix: each other island, with its own probability.
enum class Topology { all, ring, torus, star, random, nodes, matrix };
constexpr std::array<std::string_view, 7> words_of(Topology) {
    return {"all", "ring", "torus", "star", "random", "nodes", "matrix"};
}

/// The choice of emigrants. best: the best individuals. random: any individuals, with equal probability. tournament:
/// for each emigrant, the better of two random individuals.
enum class Emigrants { best, random, tournament };
constexpr std::array<std::string_view, 3> words_of(Emigrants) {
    return {"best", "random", "tournament"};
}

struct ExchangeOptions {
    ExchangeKind kind = ExchangeKind::pollination;
    Topology topology = Topology::all;
    double probability = 0.9;   ///< of an exchange, per island and round (one evaluation by each of its workers)
    std::int64_t migrants = 1;  ///< individuals per target island and exchange
    /// Numbers of migrants [from][to], which replace `migrants`; 0: none, and the diagonal is unused. Empty: no matrix.
    std::vector<std::vector<std::int64_t>> migrants_between{};
    Emigrants emigrants = Emigrants::best;
    std::vector<std::vector<double>> matrix{};  ///< for Topology::matrix: probabilities [from][to], diagonal unused
    std::vector<int> node_of_island{};          ///< for Topology::nodes: node numbers; empty: all islands on one node
};

/// The live leaders of one island, as worker indices.
struct IslandLeaders {
    int island = 0;
    std::vector<std::int32_t> workers;
};

/// Returns the worker that may write the home register of individual `id`. Chooses the worker with the largest hash of
/// (id, worker), as in rendezvous hashing (Thaler and Ravishankar 1998). All leaders therefore choose the same worker,
/// and a change of `workers` reassigns few registers. `workers` must not be empty.
[[nodiscard]] std::int32_t register_writer(Id id, std::span<const std::int32_t> workers);

/// Returns the messages that worker `self` of `leaders.island` sends after one of its evaluations. The messages are
/// sent with probability options.probability / (number of the island's workers). Under migration, the messages are
/// Moves, and each target island gets different emigrants. Emigrants are chosen from the individuals on this island for
/// which `self` may write the home register. Nothing is sent if there are too few such individuals. Under pollination,
/// the messages are Copies, and each target island gets the same emigrants, or the first of them, or fewer if the
/// island has fewer. An emigrant is not sent to an island that is known to have it.
[[nodiscard]] std::vector<Record> plan_exchange(const ExchangeOptions& options, const Population& population,
                                                const IslandLeaders& leaders, std::int32_t self, RandomStream& random);

/// Returns the islands to which `island` sends in one exchange, if there are `islands` islands. Throws
/// std::out_of_range if the matrix or the node numbers cover fewer islands.
[[nodiscard]] std::vector<int> exchange_targets(const ExchangeOptions& options, int island, int islands,
                                                RandomStream& random);

}  // namespace finch::search
