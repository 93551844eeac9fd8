#include "finch/evaluate/program_environment.hpp"

#include "finch/base/format.hpp"
#include "finch/base/handle.hpp"
#include "finch/base/message.hpp"
#include "finch/cluster/network.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <netinet/in.h>
#include <set>
#include <sstream>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace finch::evaluate {
namespace {

/// True if `name` begins with a word of `beginnings`.
bool begins_with(const std::string& name, const char* beginnings) {
    std::istringstream words(beginnings);
    std::string word;
    while (words >> word && !name.starts_with(word)) {
    }
    return !words.fail();
}

/// True if an MPI launcher set the variable for Finch's own ranks. Settings of users for Open MPI (OMPI_MCA_btl) are
/// inherited, because a program may itself be an MPI program. mpirun sets some variables that users set as well
/// (mpirun --oversubscribe): those of `launcher`, with which mpirun itself was started, are the user's.
bool is_of_mpi_launch(const Variables::value_type& variable, const cluster::Environment& launcher) {
    const std::string& name = variable.first;
    const bool is_setting =
        begins_with(name, "OMPI_MCA_ PMIX_MCA_ PRTE_MCA_ OMPI_ALLOW_RUN_AS_ROOT PRTE_ALLOW_RUN_AS_ROOT");
    const char* const of_mpirun =
        is_setting ? "OMPI_MCA_orte_ OMPI_MCA_ess OMPI_MCA_hwloc_base_binding OMPI_MCA_rmaps_ OMPI_MCA_initial_wdir "
                     "OMPI_MCA_mpi_oversubscribe OMPI_MCA_pmix OMPI_MCA_shmem_ OMPI_MCA_plm OMPI_MCA_PREFIXES "
                     "OMPI_MCA_cpu_type OMPI_MCA_num_procs PMIX_MCA_mca_base_component_show_load_errors"
                   : "OMPI_ PRTE_ ORTE_ OPAL_ IPATH_NO_ HFI_NO_BACKTRACE HWLOC_XMLFILE";
    const bool is_of_rank =
        !is_setting && begins_with(name,
                                   "PMI OMPI_COMM_WORLD_ HYDI_ PALS_ MV2_COMM MVP_COMM FLUX_TASK_ MPI_LOCAL "
                                   "MPI_RANKID MPI_NRANKS ALPS_APP_PE JSM_NAMESPACE_");
    return is_of_rank || (begins_with(name, of_mpirun) && launcher.text(name) != variable.second);
}

/// True if `name` describes Finch's own step or the nodes of other workers, or is an option of Finch's job or step that
/// an srun of the program, or of a job that the program submits, would read.
bool is_of_slurm_launch(const std::string& name) {
    return begins_with(
        name,
        "SLURM_PMI SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_NTASKS SLURM_NPROCS SLURM_NNODES SLURM_NODELIST "
        "SLURM_NODE_ALIAS SLURM_STEP SLURM_TASK SLURM_GTIDS SLURM_JOB_NODELIST SLURM_JOB_NUM_NODES "
        "SLURM_JOB_CPUS_PER_NODE SLURM_CPUS_ON_NODE SLURM_CPUS_PER_GPU SLURM_CPU_BIND SLURM_CPU_FREQ_REQ SLURM_MEM_ "
        "SLURM_GPU SLURM_JOB_GPUS SLURM_TRES_PER_TASK SLURM_THREADS_PER SLURM_SRUN_COMM SLURM_LAUNCH_NODE "
        "SLURM_HOSTFILE SLURM_DIST SLURM_TOPOLOGY_ SLURM_HET_ SLURM_EXPORT_ENV SLURM_OVERLAP SLURM_OVERCOMMIT "
        "SLURM_EXACT SLURM_EXCLUSIVE SLURM_LABELIO SLURM_MULTI_PROG SLURM_OUTPUT SLURM_ERROR SLURM_INPUT SLURM_STD "
        "SLURM_MPI_TYPE SLURM_UMASK SLURM_RESV_PORTS SLURM_CONTAINER SLURM_KILL_BAD_EXIT SLURM_GRES SLURM_CORE_SPEC "
        "SLURM_THREAD_SPEC SLURM_WORKING_DIR SLURM_REMOTE_CWD SRUN_ SBATCH_CPU_BIND SBATCH_MEM_BIND");
}

/// True if `name` belongs to the programs of one individual, for example FINCH_RESUME. Finch inherits these variables
/// if a program of another run started Finch. Variables that begin with PET_ (torchrun's options) or JAX_COORDINATOR_
/// (jax's address) differ between workers.
bool is_of_individual(const std::string& name) {
    static const std::set<std::string> names{
        "FINCH_ID",     "FINCH_SEED",  "FINCH_RUN",           "FINCH_FOLDER", "FINCH_CHECKPOINT_DIR",
        "FINCH_RESUME", "FINCH_HOSTS", "FINCH_DEADLINE_FILE", "LOCAL_RANK",   "TORCHELASTIC_RUN_ID"};
    return names.contains(name) || begins_with(name, "FINCH_GENE_ FINCH_PARENT_ FINCH_TEST_ PET_ JAX_COORDINATOR_");
}

/// Collective over the worker. Returns the address of rank 0's node: its name `node`, which no other node has. Returns
/// an IP address if this node cannot resolve the name.
std::string address_of_leader(const comm::Group& group, const std::string& node) {
    const std::vector<cluster::NetworkPlace> mine = cluster::network_places();
    const std::string leaders = comm::broadcast(group.get(), group.is_leader() ? to_text(mine) : "");
    const std::string address = cluster::address_towards(cluster::network_places_in(leaders), mine);
    return address.empty() || cluster::resolves(node) ? node : address;
}

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

Variables inherited_variables(const cluster::Environment& started, const cluster::Environment& launcher,
                              config::SlurmVariables slurm) {
    Variables inherited;
    for (const auto& variable : started.all()) {
        const std::string& name = variable.first;
        const bool is_of_launch = slurm == config::SlurmVariables::none
                                      ? begins_with(name, "SLURM SBATCH_ SALLOC_ SRUN_") && name != "SLURM_CONF"
                                      : is_of_slurm_launch(name);
        if (!is_of_launch && !is_of_mpi_launch(variable, launcher) && !is_of_individual(name)) {
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

/// Some programs open NCCL, which needs a GPU, as soon as LOCAL_RANK is set, also for one rank.
ProgramEnvironment::ProgramEnvironment(const comm::Group& group, const WorkerPlaces& worker,
                                       const config::CommandObjective& objective, int threads) {
    const auto started = cluster::Environment::at_start();
    const ProgramPlace place(worker, group.rank(), objective.launch);
    const std::vector<WorkerPlaces::Host> hosts = worker.hosts();
    const std::string address = hosts.size() == 1 ? "127.0.0.1" : address_of_leader(group, worker.nodes.front());
    const ProgramDevices devices = devices_of_worker(group, worker, objective.launch, started);
    variables_ = torchrun_variables(place);
    const bool has_gpu =
        !devices.variables.empty() || ::access("/dev/kfd", F_OK) == 0 || ::access("/dev/dri/renderD128", F_OK) == 0;
    if (place.size == 1 && !has_gpu) {
        variables_.erase("LOCAL_RANK");
    }
    variables_["MASTER_ADDR"] = variables_["PET_MASTER_ADDR"] = address;
    variables_.insert(devices.variables.begin(), devices.variables.end());
    if (objective.slurm == config::SlurmVariables::worker) {
        variables_.merge(slurm_variables(started, worker, place, address, devices));
    }
    variables_.merge(inherited_variables(started, cluster::Environment::of_launcher(), objective.slurm));
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
    more["MASTER_PORT"] = more["PET_MASTER_PORT"] = std::to_string(port);
    if (variables_.contains("LOCAL_RANK")) {
        more["TORCHELASTIC_RUN_ID"] = more["FINCH_ID"];
    }
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
