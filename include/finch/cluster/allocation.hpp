#pragma once

#include "finch/cluster/environment.hpp"

#include <string>
#include <vector>

namespace finch::cluster {

/// The maximum number of nodes in an expanded list.
inline constexpr std::size_t most_nodes = std::size_t{1} << 18;
inline constexpr std::size_t most_ranks = std::size_t{1} << 20;
/// The maximum total size, in bytes, of the names of all nodes. The same limit applies to the node names of all ranks.
inline constexpr std::size_t most_name_bytes = std::size_t{12} << 20;

/// Expands a Slurm host list to node names, in the order of `scontrol show hostnames`: "n[1-3,07],gpu4" → n1 n2 n3 n07
/// gpu4, "r[1-2]n[1-2]" → r1n1 r1n2 r2n1 r2n2. Numbers may have any number of digits. Throws ConfigError if the list
/// cannot be read, has more than `most_nodes` nodes, or its names take more than `most_name_bytes`.
[[nodiscard]] std::vector<std::string> expand_host_list(const std::string& list);

/// Expands a value of SLURM_TASKS_PER_NODE to a count per node: "2(x3),1" → 2 2 2 1. Throws ConfigError if the value
/// cannot be read or stands for more than `most_ranks` ranks.
[[nodiscard]] std::vector<int> expand_counts(const std::string& counts);

/// Returns the node of each rank of a step over the whole allocation, in Slurm's block distribution. The names are
/// node1, node2 … if the host list cannot be read. Returns nothing outside an allocation. Throws ConfigError if the
/// counts cannot be read or the names take more than `most_name_bytes`.
[[nodiscard]] std::vector<std::string> ranks_of_allocation(const Environment& environment);

}  // namespace finch::cluster
