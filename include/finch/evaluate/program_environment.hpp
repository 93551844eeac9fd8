#pragma once

#include "finch/comm/group.hpp"
#include "finch/config/command.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace finch::evaluate {

/// Where the ranks of one worker are.
struct WorkerPlaces {
    std::vector<std::string> nodes;  ///< by rank of the worker
    std::vector<int> local_ranks;    ///< by rank of the worker: among all ranks of its node
};

/// The environment of this rank's programs: that of this process without what MPI and Slurm say of its own place, and
/// what torchrun says of the program's.
class ProgramEnvironment {
public:
    /// Collective over the worker. `threads`: of one program.
    ProgramEnvironment(const comm::Group& group, WorkerPlaces places, config::Launch launch, int threads);

    /// "NAME=value" of all variables: those of `more`, RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
    /// MASTER_PORT, CUDA_VISIBLE_DEVICES with the devices of the worker's ranks on this node if there are any,
    /// OMP_NUM_THREADS unless it is set, and the others.
    [[nodiscard]] std::vector<std::string> with(std::map<std::string, std::string> more, std::int32_t port) const;

private:
    std::map<std::string, std::string> variables_;
};

/// A port of TCP that nothing on this node listens at now; 0 if none can be had.
[[nodiscard]] std::int32_t free_port();

}  // namespace finch::evaluate
