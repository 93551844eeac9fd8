#pragma once

#include "finch/comm/mpi.hpp"

#include <functional>
#include <span>
#include <string>

namespace finch::comm {

/// Starts a phase: waits in the functions of mpi.hpp and node_memory.hpp get a deadline of `seconds` from now. The next
/// phase replaces the deadline. A wait beyond the deadline throws an Error with `what` and the ranks that are not
/// waiting.
void begin_phase(const std::string& what, double seconds);
/// Ends the phase: waits have no deadline from now on.
void end_phase() noexcept;

/// Polls `is_done` until it returns true. Throws Error after the deadline of the phase. All ranks of the communicator
/// in use must be in a phase.
void wait_until(const std::function<bool()>& is_done);
/// Waits for `request` until the deadline of the phase.
void wait_for(MPI_Request request);

/// Collective over `world`. Checks that all ranks arrive within the phase. Checks that an all-reduce over all ranks,
/// which uses every network path, gives the known sum. Throws Error if a check fails. `node_of_rank`: node names for
/// error messages from now on.
void check_start(MPI_Comm world, std::span<const std::string> node_of_rank);

}  // namespace finch::comm
