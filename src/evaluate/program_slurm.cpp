#include "finch/base/format.hpp"
#include "finch/evaluate/program_environment.hpp"

#include <algorithm>
#include <functional>

namespace finch::evaluate {
namespace {

using Hosts = std::vector<WorkerPlaces::Host>;

std::string names_of(const Hosts& hosts) {
    std::string names;
    for (const WorkerPlaces::Host& host : hosts) {
        names += (names.empty() ? "" : ",") + host.node;
    }
    return names;
}

/// Returns `each` times the number of ranks of each host, as Slurm writes it: "2(x3),1" for three hosts with 2 and one
/// with 1.
std::string counts_of(const Hosts& hosts, long long each) {
    std::vector<std::string> texts;
    for (std::size_t first = 0, end = 0; first < hosts.size(); first = end) {
        while (end < hosts.size() && hosts[end].ranks.size() == hosts[first].ranks.size()) {
            ++end;
        }
        const long long count = each * static_cast<long long>(hosts[first].ranks.size());
        texts.push_back(end - first == 1 ? std::to_string(count) : fmt::format("{}(x{})", count, end - first));
    }
    return fmt::format("{}", fmt::join(texts, ","));
}

}  // namespace

/// Lightning needs SLURM_NTASKS_PER_NODE in addition to SLURM_NTASKS, ignite needs SLURM_JOB_NUM_NODES, and jax needs
/// SLURM_STEP_NODELIST. Open MPI's mpirun uses SLURM_NODELIST and SLURM_TASKS_PER_NODE as its allocation: all nodes of
/// the worker, even if only the leader starts a program. A step inside Finch's step must share the CPUs and the memory
/// of Finch's step: Slurm would refuse any other step or let it wait forever. SLURM_OVERLAP and SLURM_MEM_PER_NODE
/// would also reach the jobs that the program submits, so the options are in the variables of each MPI launcher.
Variables slurm_variables(const cluster::Environment& started, const WorkerPlaces& worker, const ProgramPlace& place,
                          const std::string& address, const ProgramDevices& devices) {
    if (!started.text("SLURM_JOB_ID")) {
        return {};
    }
    const Hosts all = worker.hosts();
    const long long cpus = std::max(1LL, started.number("SLURM_CPUS_PER_TASK").value_or(1));
    const std::string tasks = std::to_string(place.size);
    Variables variables{
        {"SLURM_PROCID", std::to_string(place.rank)},
        {"SLURM_LOCALID", std::to_string(place.local_rank)},
        {"SLURM_NODEID", std::to_string(place.host)},
        {"SLURM_NTASKS", tasks},
        {"SLURM_NPROCS", tasks},
        {"SLURM_STEP_NUM_TASKS", tasks},
        {"SLURM_GTIDS", fmt::format("{}", fmt::join(place.hosts[place.host].ranks, ","))},
        {"SLURM_NNODES", std::to_string(place.hosts.size())},
        {"SLURM_STEP_NUM_NODES", std::to_string(place.hosts.size())},
        {"SLURM_STEP_NODELIST", names_of(place.hosts)},
        {"SLURM_STEP_TASKS_PER_NODE", counts_of(place.hosts, 1)},
        {"SLURM_JOB_NUM_NODES", std::to_string(all.size())},
        {"SLURM_JOB_NODELIST", names_of(all)},
        {"SLURM_NODELIST", names_of(all)},
        {"SLURM_TASKS_PER_NODE", counts_of(all, 1)},
        {"SLURM_JOB_CPUS_PER_NODE", counts_of(all, cpus)},
        {"SLURM_CPUS_ON_NODE", std::to_string(cpus * static_cast<long long>(all[place.host].ranks.size()))}};
    std::vector<const char*> options{"OMPI_MCA_plm_slurm_args", "PRTE_MCA_plm_slurm_args", "HYDRA_LAUNCHER_EXTRA_ARGS",
                                     "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"};
    for (const char* name : {"HYDRA_LAUNCHER", "HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP"}) {
        options.resize(started.text(name).value_or("slurm") == "slurm" ? options.size() : 2);  // ssh has other options
    }
    for (const char* name : options) {
        variables[name] = fmt::format("--overlap --mem=0 {}", started.text(name).value_or(""));
    }
    if (place.size == static_cast<int>(worker.nodes.size())) {
        std::size_t most = 0;
        for (const WorkerPlaces::Host& host : all) {
            most = std::max(most, host.ranks.size());
        }
        variables["SLURM_NTASKS_PER_NODE"] = std::to_string(most);
    }
    for (const char* name : {"SLURM_STEP_ID", "SLURM_STEPID"}) {
        if (const auto id = started.text(name)) {
            variables[name] = *id;
        }
    }
    if (started.text("SLURM_LAUNCH_NODE_IPADDR")) {
        variables["SLURM_LAUNCH_NODE_IPADDR"] = address;
    }
    if (started.text("SLURM_GPUS_ON_NODE")) {
        variables["SLURM_GPUS_ON_NODE"] = std::to_string(devices.seen);
    }
    for (const char* name : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"}) {
        if (started.text(name) && !devices.variables.empty()) {
            variables[name] = devices.variables.begin()->second;
        }
    }
    return variables;
}

}  // namespace finch::evaluate
