#pragma once

#include <string>
#include <vector>

namespace finch::cluster {

/// Who runs where. One entry per world rank.
struct Place {
    std::string node;
    int local_rank = 0;   ///< among the ranks of its node, by world rank
    int local_ranks = 1;  ///< ranks on its node
    int worker = 0;
    int group_rank = 0;  ///< within the worker; 0 leads
    int island = 0;
};

struct LayoutOptions {
    int ranks_per_worker = 1;
    int islands = 1;                ///< where `island_sizes` is empty: the first (workers mod islands) get one more;
                                    ///< 0: automatic_islands()
    std::vector<int> island_sizes;  ///< in workers; empty: as equal as can be
};

struct Layout {
    std::vector<Place> places;          ///< by world rank
    std::vector<int> leaders;           ///< world rank of each worker's leader, by worker
    std::vector<int> island_of_worker;  ///< by worker
    int islands = 1;
    std::vector<std::string> warnings;  ///< a group that crosses nodes, nodes with unequal numbers of ranks
};

/// The name of each rank's node: its host's name, or "HOST#1", "HOST#2" … if several nodes have that one.
/// `first_rank_on_node`: the lowest rank with which each one shares memory.
[[nodiscard]] std::vector<std::string> names_of_nodes(const std::vector<std::string>& host_of_rank,
                                                      const std::vector<int>& first_rank_on_node);

/// Whether names_of_nodes() gave it a number, which no host's name has.
[[nodiscard]] bool has_shared_host_name(const std::string& node) noexcept;

/// All leaders of an island hear of every result there.
inline constexpr int most_workers_of_island = 256;

/// The fewest islands with at most the supported number of workers each.
[[nodiscard]] int automatic_islands(int workers) noexcept;

/// The node on which each island's first leader is, numbered from 0 in the order of islands.
[[nodiscard]] std::vector<int> node_of_island(const Layout& layout);

/// Fills the groups node by node: worker w is the w-th group of `ranks_per_worker` ranks in the order of (node's first
/// world rank, world rank). World rank 0 always leads worker 0. `node_of_rank`: the node's name, by world rank. A pure
/// function. Throws ConfigError if the ranks are no multiple of the group size or the workers are too few for the
/// islands or too many for one island, naming the nearest counts that fit.
[[nodiscard]] Layout make_layout(const std::vector<std::string>& node_of_rank, const LayoutOptions& options);

}  // namespace finch::cluster
