// Not a test by itself: what tests/comm/CMakeLists.txt runs to see that a rank whose Session is unwound by an exception
// aborts the whole run, where MPI_Finalize would wait for the others, and they for it, for ever.
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
