#include "finch/cluster/environment.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"
#include "finch/cluster/allocation.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <memory>
#include <sched.h>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace finch::cluster {
namespace {

struct CpuSetDeleter {
    void operator()(cpu_set_t* set) const noexcept { CPU_FREE(set); }
};

/// Adds the variable of `line`, "NAME=value".
void add_variable(std::string_view line, std::map<std::string, std::string>& variables) {
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos) {
        variables.emplace(line.substr(0, equals), line.substr(equals + 1));
    }
}

}  // namespace

Environment Environment::of_this_process() {
    std::map<std::string, std::string> variables;
    for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
        add_variable(*entry, variables);
    }
    return Environment(std::move(variables));
}

Environment Environment::at_start() {
    std::map<std::string, std::string> variables;
    std::ifstream file("/proc/self/environ", std::ios::binary);
    for (std::string line; std::getline(file, line, '\0');) {
        add_variable(line, variables);
    }
    return variables.empty() ? of_this_process() : Environment(std::move(variables));
}

std::optional<std::string> Environment::text(const std::string& name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<long long> Environment::number(const std::string& name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? std::nullopt : parsed<long long>(found->second);
}

Slurm Slurm::read(const Environment& environment) {
    Slurm slurm;
    slurm.job_id = environment.text("SLURM_JOB_ID");
    slurm.localid = environment.number("SLURM_LOCALID");
    slurm.step_tasks = environment.number("SLURM_STEP_NUM_TASKS");
    slurm.cpus_per_task = environment.number("SLURM_CPUS_PER_TASK");
    slurm.restart_count = std::max(0LL, environment.number("SLURM_RESTART_COUNT").value_or(0));
    for (const char* name : {"SLURM_JOB_END_TIME", "FINCH_DEADLINE"}) {
        const auto seconds = environment.number(name);
        if (!slurm.end_time && seconds && *seconds > 0) {
            slurm.end_time = static_cast<double>(*seconds);
        }
    }
    return slurm;
}

std::optional<std::string> launch_problem(const Slurm& slurm, int world_size) {
    const long long tasks = slurm.step_tasks.value_or(1);
    if (world_size != 1 || tasks <= 1) {
        return std::nullopt;
    }
    return fmt::format(
        "srun started {0} tasks, but MPI sees only one rank: they would be {0} separate runs on the same files. srun "
        "and "
        "MPI do not speak with each other. Start it with `srun --mpi=pmix`; `srun --mpi=list` shows what this Slurm "
        "can do. Where pmix is not listed, start it with mpirun from the batch script.",
        tasks);
}

std::optional<std::string> launch_problem(const Environment& environment) {
    for (const char* name : {"PMIX_NAMESPACE", "PMIX_RANK", "PMI_RANK", "PMI_FD", "OMPI_COMM_WORLD_SIZE"}) {
        if (environment.text(name)) {
            return std::nullopt;
        }
    }
    return launch_problem(Slurm::read(environment), 1);
}

std::optional<long long> ranks_expected(const Environment& environment) {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
        if (const auto ranks = environment.number(name)) {
            return ranks;
        }
    }
    return std::nullopt;
}

std::vector<std::string> nodes_of_ranks(const Environment& environment, int world_size) {
    const auto ranks = static_cast<std::size_t>(world_size);
    if (environment.number("OMPI_COMM_WORLD_LOCAL_SIZE") == world_size) {
        return std::vector<std::string>(ranks, host_name());
    }
    const auto list = environment.text("SLURM_STEP_NODELIST");
    const auto tasks = environment.text("SLURM_STEP_TASKS_PER_NODE");
    if (!list || !tasks || environment.text("SLURM_DISTRIBUTION").value_or("block").rfind("block", 0) != 0) {
        return {};
    }
    std::vector<std::string> nodes =
        ranks_of_allocation(Environment({{"SLURM_JOB_NODELIST", *list}, {"SLURM_TASKS_PER_NODE", *tasks}}));
    return nodes.size() == ranks ? nodes : std::vector<std::string>();
}

std::optional<long long> ranks_on_node(const Environment& environment) {
    if (const auto by_mpirun = environment.number("OMPI_COMM_WORLD_LOCAL_SIZE")) {
        return by_mpirun;
    }
    if (const auto by_step = environment.text("SLURM_STEP_TASKS_PER_NODE")) {
        const long long node = environment.number("SLURM_NODEID").value_or(0);
        try {
            const std::vector<int> tasks = expand_counts(*by_step);
            if (node >= 0 && node < static_cast<long long>(tasks.size())) {
                return tasks[static_cast<std::size_t>(node)];
            }
        } catch (const ConfigError&) {
            // A list that says nothing sensible says nothing: MPI starts without it.
        }
    }
    return environment.number("SLURM_NTASKS_PER_NODE");
}

bool node_is_crowded(const Environment& environment, int usable_cpus) {
    const long long ranks = ranks_on_node(environment).value_or(1);
    if (ranks <= usable_cpus) {
        return false;
    }
    if (environment.number("OMPI_COMM_WORLD_LOCAL_SIZE")) {
        // mpirun refuses to bind more ranks to a place than it has cores, so a rank that it bound has a core.
        return environment.number("OMPI_MCA_orte_bound_at_launch").value_or(0) == 0;
    }
    // srun binds each task to its own CPUs; all of them together are what the step has on this node.
    return ranks > environment.number("SLURM_CPUS_ON_NODE").value_or(0);
}

std::vector<int> own_cpus() {
    // A machine may have more CPUs than a plain cpu_set_t has bits; the kernel then says EINVAL.
    for (int capacity = CPU_SETSIZE; capacity <= CPU_SETSIZE * 64; capacity *= 2) {
        const std::unique_ptr<cpu_set_t, CpuSetDeleter> set(CPU_ALLOC(static_cast<std::size_t>(capacity)));
        const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(capacity));
        if (::sched_getaffinity(0, bytes, set.get()) == 0) {
            std::vector<int> cpus;
            for (int cpu = 0; cpu < capacity; ++cpu) {
                if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set.get())) {
                    cpus.push_back(cpu);
                }
            }
            return cpus;
        }
        if (errno != EINVAL) {
            break;
        }
    }
    return {};
}

int usable_cpus() {
    const auto count = static_cast<int>(own_cpus().size());
    if (count == 0) {
        throw_errno("sched_getaffinity");
    }
    return count;
}

std::string host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) {
        throw_errno("gethostname");
    }
    return name.data();
}

}  // namespace finch::cluster
