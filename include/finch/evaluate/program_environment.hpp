#pragma once

#include "finch/cluster/environment.hpp"
#include "finch/comm/group.hpp"
#include "finch/config/command.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace finch::evaluate {

using Variables = std::map<std::string, std::string>;

/// The nodes of one worker's ranks.
struct WorkerPlaces {
    std::vector<std::string> nodes;  ///< by rank of the worker
    std::vector<int> local_ranks;    ///< by rank of the worker: its rank among all ranks of its node

    struct Host {
        std::string node;
        std::vector<int> ranks;  ///< of the worker
    };
    /// Returns each node once, in the order of ranks.
    [[nodiscard]] std::vector<Host> hosts() const;
};

/// The position of one process among all processes that are started for an individual.
struct ProgramPlace {
    /// With Launch::leader there is only one process, on rank 0's node.
    ProgramPlace(const WorkerPlaces& worker, int rank, config::Launch launch);

    std::vector<WorkerPlaces::Host> hosts;  ///< nodes of the processes
    std::size_t host = 0;
    int rank = 0;
    int local_rank = 0;
    int size = 1;
    int local_size = 1;
};

/// Returns the variables of `started` that programs inherit. Leaves out variables that MPI launchers and Slurm set to
/// describe Finch's own launch, and variables that Finch sets itself (FINCH_RESUME and others). With
/// SlurmVariables::none, SLURM_CONF is the only inherited variable of Slurm. `launcher`: the environment of mpirun.
[[nodiscard]] Variables inherited_variables(const cluster::Environment& started, const cluster::Environment& launcher,
                                            config::SlurmVariables slurm);
/// Returns the variables that torchrun sets, and NODE_RANK, without MASTER_ADDR, MASTER_PORT and TORCHELASTIC_RUN_ID.
[[nodiscard]] Variables torchrun_variables(const ProgramPlace& place);
/// The devices of a worker's ranks on one node.
struct ProgramDevices {
    Variables variables;   ///< CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES and similar; empty: no device is known
    std::size_t seen = 0;  ///< how many devices one process sees
    std::string problem;   ///< error text if a rank has no device of its own; else empty
};
/// Returns Slurm's variables as if the program's processes were a step of a job on the worker's nodes. Empty outside of
/// a Slurm job. `address`: the address of rank 0's node.
[[nodiscard]] Variables slurm_variables(const cluster::Environment& started, const WorkerPlaces& worker,
                                        const ProgramPlace& place, const std::string& address,
                                        const ProgramDevices& devices);

/// Collective over the worker. Assigns each rank one of the devices that it sees. Returns the devices of the ranks on
/// this node.
[[nodiscard]] ProgramDevices devices_of_worker(const comm::Group& group, const WorkerPlaces& worker,
                                               config::Launch launch, const cluster::Environment& started);

/// Collective over the worker. With Launch::leader, returns the CPUs of the worker's ranks on this node, ascending.
/// With Launch::ranks, returns none: each process keeps the CPUs of its rank. `own`: the CPUs of this rank.
[[nodiscard]] std::vector<int> cpus_of_worker(const comm::Group& group, const WorkerPlaces& worker,
                                              config::Launch launch, const std::vector<int>& own);

/// The environment of this rank's programs. A program gets the environment in which Finch was started, without the
/// variables that describe Finch's own launch, and with variables that describe the program's processes.
class ProgramEnvironment {
public:
    /// Collective over the worker. `threads`: the threads of one program.
    ProgramEnvironment(const comm::Group& group, const WorkerPlaces& worker, const config::CommandObjective& objective,
                       int threads);

    /// Returns the whole environment as "NAME=value": `more`, the variables that depend on `port`, and all other
    /// variables. Includes OMP_NUM_THREADS and PYTHONUNBUFFERED=1 unless they are set already.
    [[nodiscard]] std::vector<std::string> with(Variables more, std::int32_t port) const;
    /// Returns the worker's nodes, rank 0's node first: "n1,n2".
    [[nodiscard]] const std::string& hosts() const noexcept { return hosts_; }
    /// Returns a line "n1 slots=2" for each node, in the format of Open MPI and Horovod.
    [[nodiscard]] const std::string& hostfile() const noexcept { return hostfile_; }
    /// Returns the CPUs that programs may run on; empty: the CPUs of this rank.
    [[nodiscard]] const std::vector<int>& cpus() const noexcept { return cpus_; }

private:
    Variables variables_;
    std::string hosts_;
    std::string hostfile_;
    std::vector<int> cpus_;
};

/// Returns a TCP port on which no process of this node listens now; 0 if none is available.
[[nodiscard]] std::int32_t free_port();

}  // namespace finch::evaluate
