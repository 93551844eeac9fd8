// Not a test by itself. tests/comm/CMakeLists.txt runs this program to check that an exception on one rank aborts the
// whole run. If Session called MPI_Finalize in this case, all ranks would wait for each other forever.
#include "finch/comm/mpi.hpp"

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
    try {
        const finch::comm::Session session(argc, argv);
        if (session.world_rank() == 1) {
            throw finch::Error("rank 1 has had enough");
        }
        FINCH_MPI(MPI_Barrier(MPI_COMM_WORLD));
    } catch (const std::exception& error) {
        std::puts(error.what());
    }
    return 0;
}
