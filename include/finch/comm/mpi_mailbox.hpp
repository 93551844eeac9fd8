#pragma once

#include "finch/comm/mailbox.hpp"
#include "finch/comm/mpi.hpp"

#include <memory>
#include <span>

namespace finch::comm {

/// Collective over `leaders`, a communicator of the workers' leaders in the order of workers (rank = worker). MPI_Isend
/// from shared buffers that are reaped, MPI_Improbe and MPI_Imrecv; the closing is MPI_Ireduce_scatter_block of the
/// counts sent, then MPI_Ibarrier.
[[nodiscard]] std::unique_ptr<Mailbox> make_mpi_mailbox(MPI_Comm leaders);

/// Collective over `world`. The leaders' communicator on leaders, MPI_COMM_NULL's owner elsewhere.
[[nodiscard]] Communicator make_leaders(MPI_Comm world, bool is_leader, int worker);

}  // namespace finch::comm
