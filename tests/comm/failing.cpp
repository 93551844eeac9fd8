// Not a test by itself. tests/comm/CMakeLists.txt runs this program to check that a failure is reported.
#include "finch/comm/mpi.hpp"

#include <doctest/doctest.h>

using namespace finch::comm;

TEST_CASE("rank 1 fails") {
    CHECK(rank_of(MPI_COMM_WORLD) != 1);
}

TEST_CASE("rank 1 hangs") {
    if (rank_of(MPI_COMM_WORLD) == 0) {
        FINCH_MPI(MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
}
