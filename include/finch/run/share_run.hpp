#pragma once

#include "finch/comm/mpi.hpp"
#include "finch/run/opening.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace finch::run {

/// Approximate size of a part of a longer message.
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

/// Collective over `leaders` (rank = worker). The population of the run that world rank 0 opened, on every leader: the
/// whole there, and elsewhere what the leaders of the own island need, without learning curves. It travels in chunks:
/// to the first leader of each island, and on to the others.
[[nodiscard]] OpenedRun share_run(MPI_Comm leaders, OpenedRun opened, std::span<const int> island_of_worker,
                                  search::ExchangeKind kind, int islands, std::vector<search::Cost> costs = {});

}  // namespace finch::run
