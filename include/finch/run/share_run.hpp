#pragma once

#include "finch/comm/mpi.hpp"
#include "finch/run/opening.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace finch::run {

/// The approximate size of the chunks into which a long message is split.
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

/// Collective over `leaders` (rank = worker). Distributes the population of the run that world rank 0 opened. World
/// rank 0 keeps the whole population. Every other leader gets the individuals that the leaders of its island need,
/// without learning curves. World rank 0 sends the individuals in chunks to the first leader of each island, which
/// forwards the chunks.
[[nodiscard]] OpenedRun share_run(MPI_Comm leaders, OpenedRun opened, std::span<const int> island_of_worker,
                                  search::ExchangeKind kind, int islands, std::vector<search::Cost> costs = {});

}  // namespace finch::run
