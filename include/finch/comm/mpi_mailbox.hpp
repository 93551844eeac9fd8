#pragma once

#include "finch/comm/mailbox.hpp"
#include "finch/comm/mpi.hpp"

#include <memory>
#include <span>

namespace finch::comm {

/// Collective over `leaders`, a communicator of the workers' leaders in the order of workers (rank = worker). MPI_Isend
/// from shared buffers that are reaped, MPI_Improbe and MPI_Imrecv; the closing is MPI_Ireduce_scatter_block of the
/// counts sent, then MPI_Ibarrier.
/// Counted and uncounted messages differ in their tag. The order of a sender's messages holds across both: a probe for
/// any tag sees them in the order in which they were sent (MPI 3.1, section 3.5), and they are handed out in the order
/// in which they were probed, also where a long one is complete only after a short one that follows it.
/// A mailbox that is destroyed with transfers under way (an urgent stop) leaves their buffers to MPI.
[[nodiscard]] std::unique_ptr<Mailbox> make_mpi_mailbox(MPI_Comm leaders);

/// Collective over `world`. The leaders' communicator on leaders, MPI_COMM_NULL's owner elsewhere.
[[nodiscard]] Communicator make_leaders(MPI_Comm world, bool is_leader, int worker);

}  // namespace finch::comm
