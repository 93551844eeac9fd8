#include "finch/cluster/environment.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"
#include "finch/base/words.hpp"
#include "finch/cluster/allocation.hpp"
#include "finch/cluster/machine.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
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

/// A reader of environment variables. The reader ignores a variable with an impossible value and adds a warning to
/// `warnings`. An empty variable counts as absent.
class Checked {
public:
    Checked(const Environment& environment, std::vector<std::string>& warnings)
        : environment_(environment), warnings_(warnings) {}

    [[nodiscard]] std::optional<long long> number(const char* name, long long low, long long high) const {
        const auto value = environment_.number(name);
        if (value && low <= *value && *value <= high) {
            return value;
        }
        if (words(name)) {
            ignore(name, fmt::format("a whole number from {} to {} is expected", low, high));
        }
        return std::nullopt;
    }

    /// Returns a deadline in Unix seconds; nothing if the variable is 0.
    [[nodiscard]] std::optional<double> deadline(const char* name, double now) const {
        constexpr double century = 100 * 365.25 * 86400;
        const auto seconds = number(name, 0, std::llround(now + century));
        if (!seconds || *seconds == 0) {
            return std::nullopt;
        }
        const auto time = static_cast<double>(*seconds);
        if (time <= now) {
            ignore(name, fmt::format("the job would have ended at {}, before this start", date_and_time(time)));
            return std::nullopt;
        }
        return time;
    }

    /// Returns a variable as a line of text.
    [[nodiscard]] std::optional<std::string> words(const char* name) const {
        const auto text = environment_.text(name);
        if (!text || text->empty()) {
            return std::nullopt;
        }
        return printable_line(*text);
    }

private:
    void ignore(const char* name, const std::string& why) const {
        constexpr std::size_t most = 80;
        warnings_.push_back(fmt::format("{}={} is ignored: {}", name, words(name).value_or("").substr(0, most), why));
    }

    const Environment& environment_;
    std::vector<std::string>& warnings_;
};

std::string no_pmix_text(const std::string& what, long long tasks) {
    return fmt::format(
        "{}{}. Start it with `srun --mpi=pmix`; `srun --mpi=list` shows what this Slurm can do. Where pmix is not "
        "listed, start it with mpirun from the batch script.",
        what, tasks > 1 ? fmt::format(": they would be {} separate runs on the same files", tasks) : "");
}

/// Adds the variable in `line` ("NAME=value") to `variables`.
void add_variable(std::string_view line, std::map<std::string, std::string>& variables) {
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos) {
        variables.emplace(line.substr(0, equals), line.substr(equals + 1));
    }
}

/// Returns the entry `name` of /proc/PROCESS/status; empty if it cannot be read.
std::string status_of(const std::string& process, const std::string& name) {
    std::ifstream status(fmt::format("/proc/{}/status", process));
    for (std::string word; status >> word;) {
        if (word == name && status >> word) {
            return word;
        }
    }
    return {};
}

/// Returns the environment with which a process was started; empty if it cannot be read.
Environment start_of(const std::string& process) {
    std::map<std::string, std::string> variables;
    std::ifstream file(fmt::format("/proc/{}/environ", process), std::ios::binary);
    for (std::string line; std::getline(file, line, '\0');) {
        add_variable(line, variables);
    }
    return Environment(std::move(variables));
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
    Environment started = start_of("self");
    return started.all().empty() ? of_this_process() : started;
}

Environment Environment::of_launcher() {
    std::string process = "self";
    Environment started = start_of(process);
    while (started.text("OMPI_COMM_WORLD_RANK")) {
        process = status_of(process, "PPid:");
        started = start_of(process);
    }
    return status_of(process, "Name:") == "orted" ? Environment({}) : started;
}

std::optional<std::string> Environment::text(const std::string& name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<long long> Environment::number(const std::string& name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? std::nullopt : parsed<long long>(found->second);
}

Slurm Slurm::read(const Environment& environment, double now) {
    constexpr long long most = 1 << 20;
    Slurm slurm;
    const Checked checked(environment, slurm.warnings);
    slurm.job_id = checked.words("SLURM_JOB_ID");
    slurm.cluster = checked.words("SLURM_CLUSTER_NAME");
    slurm.node_list = checked.words("SLURM_STEP_NODELIST");
    slurm.node_list = slurm.node_list ? slurm.node_list : checked.words("SLURM_JOB_NODELIST");
    slurm.localid = checked.number("SLURM_LOCALID", 0, most);
    slurm.step_tasks = checked.number("SLURM_STEP_NUM_TASKS", 1, most);
    slurm.cpus_per_task = checked.number("SLURM_CPUS_PER_TASK", 1, most);
    slurm.restart_count = checked.number("SLURM_RESTART_COUNT", 0, most).value_or(0);
    slurm.end_time = checked.deadline("SLURM_JOB_END_TIME", now);
    slurm.end_time = slurm.end_time ? slurm.end_time : checked.deadline("FINCH_DEADLINE", now);
    static_cast<void>(checked.number("FINCH_START_SECONDS", 1, most));  // for the warning; run/startup.cpp reads it
    return slurm;
}

Slurm Slurm::read(const Environment& environment) {
    return read(environment, unix_seconds());
}

std::optional<std::string> launch_problem(const Environment& environment, int world_size, const std::string& launcher) {
    if (world_size != 1) {
        return std::nullopt;
    }
    if (const long long tasks = Slurm::read(environment).step_tasks.value_or(1); tasks > 1) {
        return no_pmix_text(fmt::format("srun started {} tasks, but MPI sees only one rank", tasks), tasks);
    }
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"}) {
        if (const long long processes = environment.number(name).value_or(1); processes > 1) {
            return fmt::format(
                "the mpirun of another MPI started {0} processes ({1}={0}), but MPI sees only one rank: "
                "they would be {0} separate runs on the same files. Start it with {2}.",
                processes, name, launcher);
        }
    }
    return std::nullopt;
}

std::optional<std::string> launch_problem(const Environment& environment, const MpiStart& mpi) {
    // FLUX_JOB_ID is set by Flux. Open MPI supports the PMI of Flux, and Flux itself may run in a Slurm step.
    for (const char* name : {"PMIX_NAMESPACE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "FLUX_JOB_ID"}) {
        if (environment.text(name)) {
            return std::nullopt;
        }
    }
    const bool has_pmi = environment.text("PMI_RANK") || environment.text("PMI_FD");
    const long long tasks = Slurm::read(environment).step_tasks.value_or(1);
    const bool is_alone = tasks == 1 && (mpi.starts_alone_in_step || !environment.text("SLURM_STEP_ID"));
    if ((has_pmi && mpi.speaks_pmi) || is_alone) {
        return std::nullopt;
    }
    const std::string kind = has_pmi ? environment.text("SLURM_MPI_TYPE").value_or("pmi2") : "none";
    return no_pmix_text(
        fmt::format("srun started {} with --mpi={}, but this MPI needs pmix", counted(tasks, "task"), kind), tasks);
}

std::optional<long long> ranks_expected(const Environment& environment) {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
        if (const auto ranks = environment.number(name); ranks && *ranks > 0) {
            return ranks;
        }
    }
    return std::nullopt;
}

long long rank_before_mpi(const Environment& environment) {
    // mpirun passes on SLURM_PROCID of the batch script, which is 0 on all ranks.
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
        if (const auto rank = environment.number(name)) {
            return *rank;
        }
    }
    return 0;
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
    try {
        static_cast<void>(expand_host_list(*list));  // throws for unreadable names, which would be useless
        const std::vector<std::string> nodes =
            ranks_of_allocation(Environment({{"SLURM_JOB_NODELIST", *list}, {"SLURM_TASKS_PER_NODE", *tasks}}));
        return nodes.size() == ranks ? nodes : std::vector<std::string>();
    } catch (const ConfigError&) {
        return {};  // the names are only for messages
    }
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
            // An invalid list counts as absent, because MPI can start without the list.
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
        // mpirun never binds more ranks to a place than it has cores, so every bound rank has a core.
        return environment.number("OMPI_MCA_orte_bound_at_launch").value_or(0) == 0;
    }
    // srun binds each task to its own CPUs. SLURM_CPUS_ON_NODE is the number of CPUs of the step on this node.
    return ranks > environment.number("SLURM_CPUS_ON_NODE").value_or(0);
}

std::vector<int> own_cpus() {
    // A machine may have more CPUs than a plain cpu_set_t has bits. In this case the kernel returns EINVAL.
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
    const int cpus = count > 0 ? count : std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
    const double quota = cpu_quota();
    return quota > 0 ? std::clamp(static_cast<int>(quota), 1, cpus) : cpus;
}

std::string host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) {
        throw_errno("gethostname");
    }
    return name.data();
}

}  // namespace finch::cluster
