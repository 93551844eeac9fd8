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

/// Places of the ranks of one worker.
struct WorkerPlaces {
    std::vector<std::string> nodes;  ///< by rank of the worker
    std::vector<int> local_ranks;    ///< by rank of the worker: among all ranks of its node

    struct Host {
        std::string node;
        std::vector<int> ranks;  ///< of the worker
    };
    /// Each node once, in the order of ranks.
    [[nodiscard]] std::vector<Host> hosts() const;
};

/// One process of a program, among those that are started for an individual.
struct ProgramPlace {
    /// With Launch::leader one process, on rank 0's node.
    ProgramPlace(const WorkerPlaces& worker, int rank, config::Launch launch);

    std::vector<WorkerPlaces::Host> hosts;  ///< of the processes
    std::size_t host = 0;
    int rank = 0;
    int local_rank = 0;
    int size = 1;
    int local_size = 1;
};

/// The variables of `started` that programs inherit: those of MPI's launchers and Slurm that describe Finch's own
/// launch are left out, and those that Finch sets itself (FINCH_RESUME and the like). With SlurmVariables::none,
/// SLURM_CONF alone is inherited of Slurm's.
[[nodiscard]] Variables inherited_variables(const cluster::Environment& started, config::SlurmVariables slurm);
/// The variables that torchrun sets, and NODE_RANK, without MASTER_ADDR, MASTER_PORT and TORCHELASTIC_RUN_ID.
[[nodiscard]] Variables torchrun_variables(const ProgramPlace& place);
/// The devices of a worker's ranks on one node.
struct ProgramDevices {
    Variables variables;   ///< CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES and the like; empty: no device is known
    std::size_t seen = 0;  ///< how many devices one process sees
    std::string problem;   ///< a rank does not see its device; empty if each does
};
/// Slurm's variables as in a job on the worker's nodes, in a step of the program's processes; empty
/// outside of a job. `address`: of rank 0's node.
[[nodiscard]] Variables slurm_variables(const cluster::Environment& started, const WorkerPlaces& worker,
                                        const ProgramPlace& place, const std::string& address,
                                        const ProgramDevices& devices);

/// Collective over the worker. Each rank takes one of the devices that it sees.
[[nodiscard]] ProgramDevices devices_of_worker(const comm::Group& group, const WorkerPlaces& worker,
                                               config::Launch launch, const cluster::Environment& started);

/// Collective over the worker. With Launch::leader the CPUs of all its ranks on this node, ascending; else none, as
/// each process has those of its rank. `own`: of this rank.
[[nodiscard]] std::vector<int> cpus_of_worker(const comm::Group& group, const WorkerPlaces& worker,
                                              config::Launch launch, const std::vector<int>& own);

/// The environment of this rank's programs: what Finch was started with, without what describes Finch's own launch,
/// and what describes the program's.
class ProgramEnvironment {
public:
    /// Collective over the worker. `threads`: of one program.
    ProgramEnvironment(const comm::Group& group, const WorkerPlaces& worker, const config::CommandObjective& objective,
                       int threads);

    /// "NAME=value" of all variables: those of `more`, those that depend on the port, and the others.
    /// OMP_NUM_THREADS and PYTHONUNBUFFERED=1 unless they are set.
    [[nodiscard]] std::vector<std::string> with(Variables more, std::int32_t port) const;
    /// "n1,n2": the worker's nodes, rank 0's first.
    [[nodiscard]] const std::string& hosts() const noexcept { return hosts_; }
    /// A line "n1 slots=2" for each node, as Open MPI and Horovod read it.
    [[nodiscard]] const std::string& hostfile() const noexcept { return hostfile_; }
    /// CPUs that programs may run on; empty: those of this rank.
    [[nodiscard]] const std::vector<int>& cpus() const noexcept { return cpus_; }
    [[nodiscard]] const std::string& device_problem() const noexcept { return device_problem_; }

private:
    Variables variables_;
    std::string hosts_;
    std::string hostfile_;
    std::string device_problem_;
    std::vector<int> cpus_;
};

/// A port of TCP that nothing on this node listens at now; 0 if none can be had.
[[nodiscard]] std::int32_t free_port();

}  // namespace finch::evaluate
