#pragma once

#include "finch/cluster/environment.hpp"

#include <string>
#include <vector>

namespace finch::cluster {

/// Most nodes that a list may expand to.
inline constexpr std::size_t most_nodes = std::size_t{1} << 18;
inline constexpr std::size_t most_ranks = std::size_t{1} << 20;
/// Most bytes of the names of all nodes, and of the nodes of all ranks.
inline constexpr std::size_t most_name_bytes = std::size_t{12} << 20;

/// The node names that a Slurm host list stands for, in the order of `scontrol show hostnames`: "n[1-3,07],gpu4" →
/// n1 n2 n3 n07 gpu4, "r[1-2]n[1-2]" → r1n1 r1n2 r2n1 r2n2. Numbers may have any number of digits. Throws ConfigError
/// if it cannot be read, stands for more than `most_nodes`, or its names take more than `most_name_bytes`.
[[nodiscard]] std::vector<std::string> expand_host_list(const std::string& list);

/// The counts that SLURM_TASKS_PER_NODE stands for: "2(x3),1" → 2 2 2 1. Throws ConfigError if it cannot be read
/// or stands for more than `most_ranks`.
[[nodiscard]] std::vector<int> expand_counts(const std::string& counts);

/// The node of each rank that a step over the whole allocation would have, in Slurm's block distribution: node1, node2
/// … if the list of hosts cannot be read. Empty outside an allocation. Throws ConfigError if the counts cannot be read
/// or the names take more than `most_name_bytes`.
[[nodiscard]] std::vector<std::string> ranks_of_allocation(const Environment& environment);

}  // namespace finch::cluster
