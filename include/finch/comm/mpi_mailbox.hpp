#pragma once

#include "finch/comm/mailbox.hpp"
#include "finch/comm/mpi.hpp"

#include <memory>
#include <span>

namespace finch::comm {

/// Collective over `leaders`, a communicator of the workers' leaders in the order of workers (rank = worker). Makes a
/// Mailbox that sends shared buffers with MPI_Isend and receives with MPI_Improbe and MPI_Imrecv. Closing uses
/// MPI_Ireduce_scatter_block of the counts of sent messages, then MPI_Ibarrier.
/// Counted and uncounted messages have different tags. The order of a sender's messages holds across both tags: a probe
/// for any tag sees messages in the order in which they were sent (MPI 3.1, section 3.5). The mailbox returns messages
/// in the order of the probes, even if a short message is complete before an earlier long one.
/// If a mailbox is destroyed during transfers (an urgent stop), the buffers stay allocated, because MPI may still use
/// them.
[[nodiscard]] std::unique_ptr<Mailbox> make_mpi_mailbox(MPI_Comm leaders);

/// Collective over `world`. Returns the leaders' communicator on leaders, and MPI_COMM_NULL on other ranks.
[[nodiscard]] Communicator make_leaders(MPI_Comm world, bool is_leader, int worker);

}  // namespace finch::comm
