// The problems of a machine and their remedies: one function for each kind of problem that has occurred.
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/cluster/device_map.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/cluster/layout.hpp"
#include "finch/doctor/doctor.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace finch::doctor {
namespace {

using Problems = std::vector<Problem>;

std::string variable(const RankFacts& rank, const char* name) {
    const auto found = rank.variables.find(name);
    return found == rank.variables.end() ? "" : found->second;
}

/// Returns the nodes of the ranks for which `is` is true: "n1", "n1, n2", "n1, n2, n3 and 4 more".
template <class Predicate>
std::string nodes_where(const Facts& facts, Predicate is) {
    std::vector<std::string> nodes;
    for (const RankFacts& rank : facts.ranks) {
        if (is(rank) && std::find(nodes.begin(), nodes.end(), rank.node) == nodes.end()) {
            nodes.push_back(rank.node);
        }
    }
    constexpr std::size_t most = 3;
    const std::size_t count = nodes.size();
    nodes.resize(std::min(count, most));
    return fmt::format("{}{}", fmt::join(nodes, ", "), count > most ? fmt::format(" and {} more", count - most) : "");
}

void check_launch(const Facts& facts, Problems& problems) {
    const RankFacts& zero = facts.ranks.front();
    const cluster::Environment environment(zero.variables);
    const cluster::Slurm slurm = cluster::Slurm::read(environment);
    if (const auto problem = cluster::launch_problem(environment, facts.mpi.ranks, comm::launcher())) {
        problems.push_back({true, *problem, ""});
    }
    for (const RankFacts& rank : facts.ranks) {
        if (rank.program != zero.program) {
            problems.push_back({true,
                                fmt::format("{} runs another program than {}: {} and {}", rank.node, zero.node,
                                            rank.program, zero.program),
                                "build once, in a folder that all nodes share"});
            break;
        }
    }
    for (const std::string& warning : slurm.warnings) {
        problems.push_back({false, warning, "unset it; jobs/evolve.sbatch sets FINCH_DEADLINE anew"});
    }
    const auto has_shared_name = [](const RankFacts& rank) { return cluster::has_shared_host_name(rank.node); };
    if (const std::string nodes = nodes_where(facts, has_shared_name); !nodes.empty()) {
        problems.push_back({false, fmt::format("{}: several nodes have one host name", nodes),
                            "give each node a name of its own; until then MASTER_ADDR of programs is an IP address"});
    }
    if (slurm.job_id && !slurm.end_time && slurm.warnings.empty()) {
        problems.push_back({false, "Slurm does not tell when the job ends (SLURM_JOB_END_TIME, from 23.02 on)",
                            "start it with jobs/evolve.sbatch, which asks squeue and sets FINCH_DEADLINE"});
    }
}

/// Finds existing devices that the driver or the program cannot use.
void check_driver(const Facts& facts, Problems& problems) {
    const auto lacks = [](const RankFacts& rank) { return rank.machine.nvidia_devices > 0 && !rank.cuda.built; };
    if (const std::string nodes = nodes_where(facts, lacks); !nodes.empty()) {
        problems.push_back({false,
                            fmt::format("{}: there are NVIDIA devices, but this program was built without CUDA", nodes),
                            "build it with -DFINCH_CUDA=ON (tools/install.sh --cuda tells what that needs)"});
    }
    const auto no_library = [](const RankFacts& rank) {
        return rank.machine.nvidia_devices > 0 && rank.cuda.built && rank.cuda.driver == 0;
    };
    if (const std::string nodes = nodes_where(facts, no_library); !nodes.empty()) {
        problems.push_back({true,
                            fmt::format("{}: there are NVIDIA devices, but libcuda.so.1, the driver's library, is not "
                                        "found",
                                        nodes),
                            "in a container start it with the host's driver (apptainer --nv, docker --gpus all); else "
                            "look at LD_LIBRARY_PATH"});
    }
    const auto is_old = [](const RankFacts& rank) {
        return rank.cuda.driver > 0 && rank.cuda.driver / 1000 < rank.cuda.runtime / 1000;
    };
    const auto old = std::find_if(facts.ranks.begin(), facts.ranks.end(), is_old);
    if (old != facts.ranks.end()) {
        problems.push_back(
            {true,
             fmt::format("{}: the driver serves CUDA {}, the program was built with {}: it finds no "
                         "device",
                         nodes_where(facts, is_old), cuda_version(old->cuda.driver), cuda_version(old->cuda.runtime)),
             fmt::format("a newer driver, or the compatibility package of CUDA {0} (cuda-compat) in "
                         "LD_LIBRARY_PATH, or a build with CUDA {1}; workers.device: cpu serves",
                         old->cuda.runtime / 1000, old->cuda.driver / 1000)});
    }
}

/// Finds processes with a driver but without a visible device.
void check_hidden(const Facts& facts, Problems& problems) {
    const auto is_hidden = [](const RankFacts& rank) {
        return rank.devices.empty() && rank.cuda.built && rank.cuda.driver > 0 &&
               rank.variables.count("CUDA_VISIBLE_DEVICES") > 0;
    };
    const auto hidden = std::find_if(facts.ranks.begin(), facts.ranks.end(), is_hidden);
    if (hidden != facts.ranks.end()) {
        problems.push_back({true,
                            fmt::format("{}: CUDA_VISIBLE_DEVICES='{}' hides every device",
                                        nodes_where(facts, is_hidden), variable(*hidden, "CUDA_VISIBLE_DEVICES")),
                            "unset it; under Slurm ask for devices (--gpus-per-node=N), which sets it"});
    }
    const auto is_granted = [](const RankFacts& rank) {
        return rank.devices.empty() &&
               !(variable(rank, "SLURM_STEP_GPUS").empty() && variable(rank, "SLURM_JOB_GPUS").empty());
    };
    const auto granted = std::find_if(facts.ranks.begin(), facts.ranks.end(), is_granted);
    if (granted != facts.ranks.end()) {
        const std::string ids = variable(*granted, "SLURM_STEP_GPUS");
        problems.push_back(
            {true,
             fmt::format("{}: Slurm gave GPUs (its numbers {}), but the program sees none: {}",
                         nodes_where(facts, is_granted), ids.empty() ? variable(*granted, "SLURM_JOB_GPUS") : ids,
                         granted->cuda.problem.empty() ? "no reason given" : granted->cuda.problem),
             "srun nvidia-smi -L in the same job shows whether the step has them; the step may need its "
             "own --gpus-per-node=N"});
    }
}

void check_devices(const Facts& facts, Problems& problems) {
    std::set<std::string> named;
    for (const RankFacts& rank : facts.ranks) {
        for (const backend::DeviceDescription& device : rank.devices) {
            if (has_code_for(facts.architectures, device.capability) || !named.insert(device.name).second) {
                continue;
            }
            problems.push_back(
                {true,
                 fmt::format("{}: {} has compute capability {}.{}; the program has code for {}", rank.node, device.name,
                             device.capability / 10, device.capability % 10, facts.architectures),
                 device.capability < 80 ? "Finch needs 8.0 (A100) or later; workers.device: cpu serves"
                                        : fmt::format("build with -DCMAKE_CUDA_ARCHITECTURES={}", device.capability)});
        }
    }
}

/// Finds the problems that map_devices() would report in a run: ranks that share a device, ranks without a device.
void check_map(const Facts& facts, Problems& problems) {
    std::vector<std::string> nodes;
    std::vector<cluster::SeenDevices> seen;
    for (const RankFacts& rank : facts.ranks) {
        nodes.push_back(rank.node);
        cluster::SeenDevices devices{{}, rank.cuda.problem, facts.nccl.built > 0, ""};
        for (const backend::DeviceDescription& device : rank.devices) {
            devices.uuids.push_back(device.uuid);
        }
        seen.push_back(std::move(devices));
    }
    try {
        static_cast<void>(cluster::map_devices(cluster::make_layout(nodes, {}).places, seen, {}));
    } catch (const ConfigError& error) {
        problems.push_back({true, error.what(), ""});
    }
}

/// Finds nodes on which each rank sees a single, different device, as with --gpus-per-task.
void check_binding(const Facts& facts, Problems& problems) {
    std::map<std::string, std::set<std::string>> only;  // by node: devices that are the only device of a rank
    for (const RankFacts& rank : facts.ranks) {
        if (rank.devices.size() == 1) {
            only[rank.node].insert(rank.devices.front().uuid);
        }
    }
    const bool is_bound =
        std::any_of(only.begin(), only.end(), [](const auto& node) { return node.second.size() > 1; });
    const bool asked = variable(facts.ranks.front(), "SLURM_TRES_PER_TASK").find("gpu") != std::string::npos ||
                       !variable(facts.ranks.front(), "SLURM_GPUS_PER_TASK").empty();
    if (is_bound || asked) {
        problems.push_back(
            {false,
             fmt::format("each rank sees one device only{}: the ranks of a worker cannot reach each other's memory "
                         "directly, and NCCL goes through the host",
                         asked ? " (--gpus-per-task)" : ""),
             "where workers.ranks is above 1: --gpus-per-node=N --ntasks-per-node=N in place of --gpus-per-task and "
             "--tres-bind"});
    }
}

void check_cpus(const Facts& facts, Problems& problems) {
    std::map<std::string, std::set<int>> cpus;
    std::map<std::string, std::size_t> ranks;
    for (const RankFacts& rank : facts.ranks) {
        cpus[rank.node].insert(rank.machine.cpus.begin(), rank.machine.cpus.end());
        ++ranks[rank.node];
    }
    for (const auto& [node, count] : ranks) {
        if (count > cpus[node].size() && !cpus[node].empty()) {
            problems.push_back({false,
                                fmt::format("{}: {} ranks share {}; they wait for each other", node, count,
                                            counted(std::ssize(cpus[node]), "CPU")),
                                "more CPUs (srun --cpus-per-task=N; mpirun --bind-to none), or fewer ranks"});
            break;
        }
    }
    const std::string& widest = facts.ranks.front().machine.instructions;
    if (widest == "SSE" || widest == "AVX") {
        problems.push_back({false, fmt::format("this CPU has no AVX2 (but {}): training on it is slow", widest),
                            "newer nodes, or GPUs"});
    }
}

void check_limits(const Facts& facts, Problems& problems) {
    const auto limited = [](const RankFacts& rank) {
        return rank.machine.address_space_bytes > 0 && rank.cuda.built &&
               (rank.machine.nvidia_devices > 0 || !rank.devices.empty());
    };
    if (const std::string nodes = nodes_where(facts, limited); !nodes.empty()) {
        problems.push_back({false,
                            fmt::format("{}: the address space is limited (ulimit -v), and CUDA reserves far more "
                                        "than it uses",
                                        nodes),
                            "ulimit -v unlimited; limit memory by Slurm's --mem"});
    }
    constexpr std::int64_t few = 256;
    const auto is_low = [](const RankFacts& rank) {
        return rank.machine.open_files > 0 && rank.machine.open_files < few;
    };
    if (const std::string nodes = nodes_where(facts, is_low); !nodes.empty()) {
        problems.push_back({false, fmt::format("{}: fewer than {} open files allowed (ulimit -n)", nodes, few),
                            "ulimit -n 4096; MPI and NCCL open one for each peer"});
    }
}

void check_variables(const Facts& facts, Problems& problems) {
    struct Row {
        const char* name;
        const char* value;  ///< the harmful value
        const char* what;
    };
    static const std::vector<Row> rows{
        {"CUDA_LAUNCH_BLOCKING", "1", "every kernel is waited for: many times slower"},
        {"CUDA_DEVICE_MAX_CONNECTIONS", "1", "all streams share one queue: workers.slots then gains little"},
        {"NVIDIA_TF32_OVERRIDE", "0", "training.precision: tf32 has no effect in the libraries"},
        {"NVIDIA_TF32_OVERRIDE", "1", "the libraries may use TF32 where training.precision is float32"},
        {"NCCL_P2P_DISABLE", "1", "NCCL goes through the host's memory between the devices of a node"},
        {"NCCL_SHM_DISABLE", "1", "NCCL goes by the network within a node"},
        {"NCCL_IB_DISABLE", "1", "NCCL goes by TCP between nodes"},
    };
    for (const Row& row : rows) {
        if (variable(facts.ranks.front(), row.name) == row.value) {
            problems.push_back({false, fmt::format("{}={}: {}", row.name, row.value, row.what),
                                fmt::format("unset {}, unless it is meant so", row.name)});
        }
    }
}

void check_libraries(const Facts& facts, Problems& problems) {
    const RankFacts& zero = facts.ranks.front();
    const auto dotted = [](std::int64_t version) {
        return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
    };
    const auto compare = [&](const char* name, std::int64_t built, std::int64_t loaded) {
        if (built > 0 && loaded < built) {
            problems.push_back(
                {loaded / 10000 != built / 10000,
                 fmt::format("{} {} is loaded, but the program was built with {}", name, dotted(loaded), dotted(built)),
                 "put the newer one first in LD_LIBRARY_PATH, or load its module"});
        }
    };
    compare("cuDNN", zero.cuda.cudnn_built, zero.cuda.cudnn);
    compare("NCCL", facts.nccl.built, facts.nccl.loaded);
    const bool has_several = std::any_of(facts.ranks.begin(), facts.ranks.end(),
                                         [](const RankFacts& rank) { return rank.devices.size() > 1; });
    if (zero.cuda.built && facts.nccl.built == 0 && has_several) {
        problems.push_back({false, "this program was built without NCCL: workers of several ranks sum through the host",
                            "install NCCL (nccl.h, libnccl.so) and build again"});
    }
}

void check_energy(const Facts& facts, Problems& problems) {
    const auto is_closed = [](const RankFacts& rank) { return rank.devices.empty() && rank.energy.is_closed; };
    const auto closed = std::find_if(facts.ranks.begin(), facts.ranks.end(), is_closed);
    if (closed != facts.ranks.end()) {
        problems.push_back({false,
                            fmt::format("{}: the processors count their energy, but this user may not read it ({}), so "
                                        "no individual's joules are measured",
                                        nodes_where(facts, is_closed), closed->energy.cpus),
                            "as root, on each node and after each boot: chmod a+r "
                            "/sys/class/powercap/intel-rapl:*/energy_uj (the kernel keeps it from users since it lets "
                            "them spy on others of the node: CVE-2020-8694); or an estimate, workers.watts: W"});
    }
}

void check_files(const Facts& facts, Problems& problems) {
    const auto fails = [&](const char* what, const char* mend, bool stops, bool store::FileSystem::*works) {
        const auto broken = std::find_if(facts.ranks.begin(), facts.ranks.end(), [&](const RankFacts& rank) {
            return !(rank.file_system.*works) && (works == &store::FileSystem::writes || rank.file_system.writes);
        });
        if (broken != facts.ranks.end()) {
            problems.push_back({stops,
                                fmt::format("{}: {} ({}) {} ({})", broken->node, broken->file_system.path,
                                            broken->file_system.kind, what, broken->file_system.problem),
                                mend});
        }
    };
    fails("cannot be written", "start it in a folder of a file system that is yours, or give --run DIR", true,
          &store::FileSystem::writes);
    fails("has no fcntl locks",
          "a heartbeat serves instead (a crashed run is taken over after a minute); Lustre: mount "
          "with -o flock",
          false, &store::FileSystem::locks);
    fails("does not sync", "results may be lost with a node; use another file system for --run", false,
          &store::FileSystem::syncs);
    fails("has no hard links", "each file's predecessor is then a copy, which takes longer", false,
          &store::FileSystem::hard_links);
    for (const DataFacts& data : facts.data) {
        if (!data.problem.empty()) {
            problems.push_back({false, data.problem, ""});
        }
    }
}

}  // namespace

bool has_code_for(const std::string& architectures, int capability) {
    std::istringstream words(architectures);
    for (std::string word; words >> word;) {
        const int number = std::atoi(word.c_str());
        const std::size_t dash = word.find('-');
        const std::string kind = dash == std::string::npos ? "" : word.substr(dash);
        const bool machine_code = kind != "-virtual" && number / 10 == capability / 10 && number <= capability;
        const bool ptx = kind != "-real" && number <= capability;
        if (machine_code || ptx) {
            return true;
        }
    }
    return false;
}

std::vector<Problem> find_problems(const Facts& facts) {
    Problems problems;
    for (const auto check : {check_launch, check_driver, check_hidden, check_devices, check_map, check_binding,
                             check_cpus, check_limits, check_variables, check_libraries, check_energy, check_files}) {
        check(facts, problems);
    }
    std::stable_partition(problems.begin(), problems.end(), [](const Problem& problem) { return problem.stops; });
    return problems;
}

}  // namespace finch::doctor
