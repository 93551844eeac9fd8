#pragma once

#include <string>
#include <vector>

namespace finch::cluster {

/// The node, worker and island of one world rank.
struct Place {
    std::string node;
    int local_rank = 0;   ///< index among the ranks of this node, ordered by world rank
    int local_ranks = 1;  ///< number of ranks on this node
    int worker = 0;
    int group_rank = 0;  ///< rank within the worker; 0: the leader
    int island = 0;
};

struct LayoutOptions {
    int ranks_per_worker = 1;
    int islands = 1;                ///< used if `island_sizes` is empty: the first (workers mod islands) get one more;
                                    ///< 0: automatic_islands()
    std::vector<int> island_sizes;  ///< in workers; empty: as equal as possible
};

struct Layout {
    std::vector<Place> places;          ///< by world rank
    std::vector<int> leaders;           ///< world rank of each worker's leader, by worker
    std::vector<int> island_of_worker;  ///< by worker
    int islands = 1;
    std::vector<std::string> warnings;  ///< workers that span nodes, nodes with unequal numbers of ranks
};

/// Returns the number of workers of each island.
[[nodiscard]] std::vector<int> workers_of_islands(const Layout& layout);

/// Returns the name of each rank's node: the host name, or "HOST#1", "HOST#2" … if several nodes have the same host
/// name. `first_rank_on_node`: for each rank, the lowest rank with which it shares memory.
[[nodiscard]] std::vector<std::string> names_of_nodes(const std::vector<std::string>& host_of_rank,
                                                      const std::vector<int>& first_rank_on_node);

/// True if names_of_nodes() added a number to the name; a real host name never contains '#'.
[[nodiscard]] bool has_shared_host_name(const std::string& node) noexcept;

/// The maximum number of workers per island. The number is limited because every result of an island is sent to all its
/// leaders.
inline constexpr int most_workers_of_island = 256;

/// Returns the smallest number of islands for which no island has more than `most_workers_of_island` workers.
[[nodiscard]] int automatic_islands(int workers) noexcept;

/// Returns, for each island, the node of its first leader. Nodes are numbered from 0 in the order of the islands.
[[nodiscard]] std::vector<int> node_of_island(const Layout& layout);

/// Assigns ranks to workers node by node: worker w is the w-th group of `ranks_per_worker` ranks in the order of
/// (node's first world rank, world rank). World rank 0 always leads worker 0. `node_of_rank`: the node's name, by world
/// rank. A pure function.
///
/// Throws ConfigError if the number of ranks is not a multiple of the group size, or if there are too few workers for
/// the islands or too many for one island. The message gives the nearest counts that fit.
[[nodiscard]] Layout make_layout(const std::vector<std::string>& node_of_rank, const LayoutOptions& options);

}  // namespace finch::cluster
