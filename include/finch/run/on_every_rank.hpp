#pragma once

#include "finch/comm/mpi.hpp"

#include <functional>
#include <string>

namespace finch::run {

/// Collective over `world`. Runs `work` on world rank 0 and gives its text to all. Where it threw a ConfigError (or
/// another Error), every rank throws an equal one, so that all leave by the same way and main() prints it once.
[[nodiscard]] std::string on_rank_zero(MPI_Comm world, const std::function<std::string()>& work);

/// Collective over `world`. Runs `work` on every rank; where it threw on any, all throw what the lowest such rank
/// threw.
void on_every_rank(MPI_Comm world, const std::function<void()>& work);

}  // namespace finch::run
