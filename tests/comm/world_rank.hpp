#pragma once

#include "finch/comm/mpi.hpp"

namespace finch::test {

[[nodiscard]] inline int world_rank() {
    return comm::rank_of(MPI_COMM_WORLD);
}

}  // namespace finch::test
