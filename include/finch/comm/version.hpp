#pragma once

#include "finch/cluster/environment.hpp"

#include <string>

namespace finch::comm {

struct MpiVersion {
    std::string library;    ///< "Open MPI v4.1.4": its version text up to the first comma or line feed
    std::string threading;  ///< thread level that it provides: "single", "funneled", "serialized", "multiple"
    int ranks = 1;          ///< in MPI_COMM_WORLD
};
/// Returns the version of the MPI library. Called between MPI_Init and MPI_Finalize.
[[nodiscard]] MpiVersion mpi_version();

/// Returns how this MPI library finds the ranks of a Slurm step. Called before MPI_Init.
[[nodiscard]] cluster::MpiStart mpi_start();

/// Returns the path of the mpirun that starts ranks of this MPI library, or its name if the path is unknown.
[[nodiscard]] std::string launcher();

/// NCCL versions as numbers: 10000 · major + 100 · minor + patch. Both are 0 if the program is built without NCCL.
struct NcclVersion {
    int built = 0;
    int loaded = 0;
};
[[nodiscard]] NcclVersion nccl_version();

}  // namespace finch::comm
