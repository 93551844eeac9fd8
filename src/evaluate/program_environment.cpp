#include "finch/evaluate/program_environment.hpp"

#include "finch/base/format.hpp"
#include "finch/base/handle.hpp"
#include "finch/base/message.hpp"
#include "finch/cluster/network.hpp"

#include <algorithm>
#include <array>
#include <netinet/in.h>
#include <set>
#include <span>
#include <string_view>
#include <sys/socket.h>

namespace finch::evaluate {
namespace {

using Beginnings = std::span<const std::string_view>;

bool begins_with(const std::string& name, Beginnings beginnings) {
    return std::any_of(beginnings.begin(), beginnings.end(),
                       [&](std::string_view beginning) { return name.starts_with(beginning); });
}

/// True if `name` describes the launch of Finch's own ranks. Settings of users for Open MPI (OMPI_MCA_btl,
/// OMPI_ALLOW_RUN_AS_ROOT) are inherited, because a program may itself be an MPI program.
bool is_of_mpi_launch(const std::string& name) {
    static constexpr std::array<std::string_view, 4> of_users{"OMPI_MCA_", "PRTE_MCA_", "OMPI_ALLOW_RUN_AS_ROOT",
                                                              "PRTE_ALLOW_RUN_AS_ROOT"};
    static constexpr std::array<std::string_view, 9> of_mpirun{
        "OMPI_MCA_orte_",  "OMPI_MCA_ess",          "OMPI_MCA_hwloc_base_binding",
        "OMPI_MCA_rmaps_", "OMPI_MCA_initial_wdir", "OMPI_MCA_mpi_oversubscribe",
        "OMPI_MCA_pmix",   "OMPI_MCA_shmem_",       "OMPI_MCA_plm"};
    static constexpr std::array<std::string_view, 19> launchers{
        "PMI",        "OMPI_",       "PRTE_",         "ORTE_",          "OPAL_",           "HYDI_",      "PALS_",
        "HYDRA_",     "MV2_COMM",    "MVP_COMM",      "MPI_LOCAL",      "IPATH_NO_",       "FLUX_TASK_", "MPI_RANKID",
        "MPI_NRANKS", "ALPS_APP_PE", "HWLOC_XMLFILE", "JSM_NAMESPACE_", "HFI_NO_BACKTRACE"};
    return begins_with(name, of_mpirun) || (begins_with(name, launchers) && !begins_with(name, of_users));
}

/// True if `name` describes Finch's own step or the nodes of other workers, or is an option that an inner srun would
/// read.
bool is_of_slurm_launch(const std::string& name) {
    static constexpr std::array<std::string_view, 37> beginnings{
        "SLURM_PMI",          "SLURM_PROCID",        "SLURM_LOCALID",
        "SLURM_NODEID",       "SLURM_NTASKS",        "SLURM_NPROCS",
        "SLURM_NNODES",       "SLURM_NODELIST",      "SLURM_NODE_ALIAS",
        "SLURM_STEP",         "SLURM_TASK",          "SLURM_GTIDS",
        "SLURM_JOB_NODELIST", "SLURM_JOB_NUM_NODES", "SLURM_JOB_CPUS_PER_NODE",
        "SLURM_CPUS_ON_NODE", "SLURM_CPU_BIND",      "SLURM_MEM_",
        "SLURM_GPU",          "SLURM_JOB_GPUS",      "SLURM_TRES_PER_TASK",
        "SLURM_SRUN_COMM",    "SLURM_LAUNCH_NODE",   "SLURM_HOSTFILE",
        "SLURM_DIST",         "SLURM_TOPOLOGY_",     "SLURM_HET_",
        "SLURM_EXPORT_ENV",   "SLURM_OVERLAP",       "SLURM_EXACT",
        "SLURM_EXCLUSIVE",    "SLURM_LABELIO",       "SLURM_MULTI_PROG",
        "SLURM_OUTPUT",       "SLURM_ERROR",         "SLURM_INPUT",
        "SLURM_STD"};
    return begins_with(name, beginnings);
}

bool is_of_slurm(const std::string& name) {
    static constexpr std::array<std::string_view, 4> beginnings{"SLURM", "SBATCH_", "SALLOC_", "SRUN_"};
    return begins_with(name, beginnings) && name != "SLURM_CONF";
}

/// True if `name` belongs to the programs of one individual, for example FINCH_RESUME. Finch inherits these variables
/// if a program of another run started Finch. Variables that begin with PET_ (torchrun's options) or JAX_COORDINATOR_
/// (jax's address) differ between workers.
bool is_of_individual(const std::string& name) {
    static constexpr std::array<std::string_view, 5> beginnings{"FINCH_GENE_", "FINCH_PARENT_", "FINCH_TEST_", "PET_",
                                                                "JAX_COORDINATOR_"};
    static constexpr std::array<std::string_view, 7> names{
        "FINCH_ID", "FINCH_SEED", "FINCH_RUN", "FINCH_FOLDER", "FINCH_CHECKPOINT_DIR", "FINCH_RESUME", "FINCH_HOSTS"};
    return begins_with(name, beginnings) || std::find(names.begin(), names.end(), name) != names.end();
}

/// Collective over the worker. Returns the address of rank 0's node: its host name. Returns an IP address if this node
/// cannot resolve the name, or if several nodes have the same name (`node` then differs from the host name).
std::string address_of_leader(const comm::Group& group, const std::string& node) {
    const std::string name = comm::broadcast(group.get(), group.is_leader() ? cluster::host_name() : "");
    const std::vector<cluster::NetworkPlace> mine = cluster::network_places();
    const std::string leaders = comm::broadcast(group.get(), group.is_leader() ? to_text(mine) : "");
    const std::string address = cluster::address_towards(cluster::network_places_in(leaders), mine);
    return address.empty() || (name == node && cluster::resolves(name)) ? name : address;
}

}  // namespace

std::vector<WorkerPlaces::Host> WorkerPlaces::hosts() const {
    std::vector<Host> hosts;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        const auto known =
            std::find_if(hosts.begin(), hosts.end(), [&](const Host& host) { return host.node == nodes[rank]; });
        Host& host = known == hosts.end() ? hosts.emplace_back(Host{nodes[rank], {}}) : *known;
        host.ranks.push_back(static_cast<int>(rank));
    }
    return hosts;
}

ProgramPlace::ProgramPlace(const WorkerPlaces& worker, int of_worker, config::Launch launch) {
    if (launch == config::Launch::leader) {
        hosts = {{worker.nodes.front(), {0}}};
        return;
    }
    hosts = worker.hosts();
    rank = of_worker;
    size = static_cast<int>(worker.nodes.size());
    while (hosts[host].node != worker.nodes[static_cast<std::size_t>(rank)]) {
        ++host;
    }
    const std::vector<int>& here = hosts[host].ranks;
    local_size = static_cast<int>(here.size());
    local_rank = static_cast<int>(std::find(here.begin(), here.end(), rank) - here.begin());
}

Variables inherited_variables(const cluster::Environment& started, config::SlurmVariables slurm) {
    Variables inherited;
    for (const auto& variable : started.all()) {
        const std::string& name = variable.first;
        const bool is_of_launch = slurm == config::SlurmVariables::none ? is_of_slurm(name) : is_of_slurm_launch(name);
        if (!is_of_launch && !is_of_mpi_launch(name) && !is_of_individual(name)) {
            inherited.insert(variable);
        }
    }
    return inherited;
}

/// Without a torchrun agent, rank 0 holds the store itself: TORCHELASTIC_USE_AGENT_STORE is False.
Variables torchrun_variables(const ProgramPlace& place) {
    const std::string rank = std::to_string(place.rank);
    const std::string size = std::to_string(place.size);
    const std::string node = std::to_string(place.host);
    return {{"RANK", rank},
            {"WORLD_SIZE", size},
            {"LOCAL_RANK", std::to_string(place.local_rank)},
            {"LOCAL_WORLD_SIZE", std::to_string(place.local_size)},
            {"GROUP_RANK", node},
            {"NODE_RANK", node},
            {"GROUP_WORLD_SIZE", std::to_string(place.hosts.size())},
            {"ROLE_RANK", rank},
            {"ROLE_WORLD_SIZE", size},
            {"ROLE_NAME", "default"},
            {"TORCHELASTIC_RESTART_COUNT", "0"},
            {"TORCHELASTIC_MAX_RESTARTS", "0"},
            {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
}

std::vector<int> cpus_of_worker(const comm::Group& group, const WorkerPlaces& worker, config::Launch launch,
                                const std::vector<int>& own) {
    if (launch == config::Launch::ranks) {
        return {};
    }
    const std::vector<std::string> all = comm::gather_all(group.get(), to_message(own));
    std::set<int> cpus;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (worker.nodes[rank] == worker.nodes[static_cast<std::size_t>(group.rank())]) {
            const auto others = from_message<std::vector<int>>(all[rank]);
            cpus.insert(others.begin(), others.end());
        }
    }
    return {cpus.begin(), cpus.end()};
}

ProgramEnvironment::ProgramEnvironment(const comm::Group& group, const WorkerPlaces& worker,
                                       const config::CommandObjective& objective, int threads) {
    const auto started = cluster::Environment::at_start();
    const ProgramPlace place(worker, group.rank(), objective.launch);
    const std::vector<WorkerPlaces::Host> hosts = worker.hosts();
    const std::string address = hosts.size() == 1 ? "127.0.0.1" : address_of_leader(group, worker.nodes.front());
    const ProgramDevices devices = devices_of_worker(group, worker, objective.launch, started);
    variables_ = torchrun_variables(place);
    variables_["MASTER_ADDR"] = address;
    variables_.insert(devices.variables.begin(), devices.variables.end());
    if (objective.slurm == config::SlurmVariables::worker) {
        variables_.merge(slurm_variables(started, worker, place, address, devices));
    }
    variables_.merge(inherited_variables(started, objective.slurm));
    variables_.emplace("OMP_NUM_THREADS", std::to_string(threads));
    variables_.emplace("PYTHONUNBUFFERED", "1");
    cpus_ = cpus_of_worker(group, worker, objective.launch, cluster::own_cpus());
    for (const WorkerPlaces::Host& host : hosts) {
        hosts_ += (hosts_.empty() ? "" : ",") + host.node;
        hostfile_ += fmt::format("{} slots={}\n", host.node, host.ranks.size());
    }
}

/// Sets an address for jax. Without this address, jax derives its port from SLURM_JOB_ID, and all workers of a job
/// would share the port.
std::vector<std::string> ProgramEnvironment::with(Variables more, std::int32_t port) const {
    more["MASTER_PORT"] = std::to_string(port);
    more["TORCHELASTIC_RUN_ID"] = more["FINCH_ID"];
    more["FINCH_HOSTS"] = hosts_;
    if (variables_.contains("SLURM_PROCID")) {
        more["JAX_COORDINATOR_ADDRESS"] = fmt::format("{}:{}", variables_.at("MASTER_ADDR"), port);
    }
    more.insert(variables_.begin(), variables_.end());
    std::vector<std::string> environment;
    for (const auto& [name, value] : more) {
        environment.push_back(name + "=" + value);
    }
    return environment;
}

std::int32_t free_port() {
    const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket.get(), any, size) != 0 || ::getsockname(socket.get(), any, &size) != 0) {
        return 0;
    }
    return ntohs(address.sin_port);
}

}  // namespace finch::evaluate
