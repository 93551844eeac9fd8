#pragma once

#include "finch/cluster/environment.hpp"

#include <string>

namespace finch::comm {

struct MpiVersion {
    std::string library;    ///< "Open MPI v4.1.4": what it says up to the first comma or line
    std::string threading;  ///< what it gives: "single", "funneled", "serialized", "multiple"
    int ranks = 1;          ///< of the world
};
/// Between MPI_Init and MPI_Finalize.
[[nodiscard]] MpiVersion mpi_version();

/// How this MPI library finds the ranks of a Slurm step. Before MPI_Init.
[[nodiscard]] cluster::MpiStart mpi_start();

/// NCCL's numbering: 10000 · major + 100 · minor + patch. Both 0 if the program is built without it.
struct NcclVersion {
    int built = 0;
    int loaded = 0;
};
[[nodiscard]] NcclVersion nccl_version();

}  // namespace finch::comm
