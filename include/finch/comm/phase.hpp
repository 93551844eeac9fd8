#pragma once

#include "finch/comm/mpi.hpp"

#include <functional>
#include <span>
#include <string>

namespace finch::comm {

/// Sets a deadline of `seconds` from now, until the next phase, for waits in the functions of mpi.hpp and
/// node_memory.hpp. A wait past it throws Error with `what` and the ranks that are not waiting.
void begin_phase(const std::string& what, double seconds);
/// From now on those waits have no deadline.
void end_phase() noexcept;

/// Asks `is_done` until it says so, within the phase. For calls on communicators whose ranks are all in a phase.
void wait_until(const std::function<bool()>& is_done);
/// Waits for `request`, within the phase.
void wait_for(MPI_Request request);

/// Collective over `world`. Within the phase all ranks come, and an all-reduce over them, through every path of the
/// network, has the sum that is known. Throws Error. `node_of_rank`: for the messages from now on.
void check_start(MPI_Comm world, std::span<const std::string> node_of_rank);

}  // namespace finch::comm
