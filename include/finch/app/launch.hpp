#pragma once

#include "finch/comm/mpi.hpp"

#include <functional>
#include <string>

/// How a verb runs, and what becomes of what it throws: a message and an exit code.
namespace finch::app {

/// Runs a verb that needs no MPI. Where what it printed could not be written, that is a fault.
[[nodiscard]] int alone(const std::function<int()>& verb);

/// If the launcher started processes that MPI does not connect: refuse, or let the verb report it.
enum class BadLaunch { refuse, tell };

/// Runs a verb on all ranks. A ConfigError reaches every rank and is printed by rank 0; anything else is one rank's
/// fault, of which the others hear by MPI_Abort. Rank 0 alone returns the code.
[[nodiscard]] int on_all_ranks(int argc, char** argv, const std::function<int(comm::Session&)>& verb,
                               BadLaunch bad_launch);

}  // namespace finch::app
