// The problems that finch doctor finds: what finch evolve itself checks, and what keeps it from using the GPUs.
#include "finch/app/doctor.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/cluster/device_map.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/cluster/layout.hpp"

#include <algorithm>
#include <set>
#include <sstream>

namespace finch::app {
namespace {

using Problems = std::vector<Problem>;

std::string variable(const RankFacts& rank, const char* name) {
    const auto found = rank.variables.find(name);
    return found == rank.variables.end() ? "" : found->second;
}

/// Calls the checks that finch evolve makes at its start.
void check_start(const Facts& facts, Problems& problems) {
    const cluster::Environment environment(facts.ranks.front().variables);
    if (const auto problem = cluster::launch_problem(environment, facts.mpi.ranks, comm::launcher())) {
        problems.push_back({true, *problem});
    }
    std::vector<std::string> warnings = cluster::Slurm::read(environment).warnings;
    std::vector<std::string> nodes;
    std::vector<cluster::SeenDevices> seen;
    for (const RankFacts& rank : facts.ranks) {
        nodes.push_back(rank.node);
        seen.push_back({{}, rank.cuda.problem, facts.nccl.built > 0, ""});
        for (const backend::DeviceDescription& device : rank.devices) {
            seen.back().uuids.push_back(device.uuid);
        }
    }
    try {
        const cluster::Layout layout = cluster::make_layout(nodes, {});
        const cluster::DeviceMap map = cluster::map_devices(layout.places, seen, {.ranks_per_worker = 2});
        warnings.insert(warnings.end(), layout.warnings.begin(), layout.warnings.end());
        warnings.insert(warnings.end(), map.warnings.begin(), map.warnings.end());
    } catch (const ConfigError& error) {
        problems.push_back({true, error.what()});
    }
    for (const std::string& warning : warnings) {
        problems.push_back({false, warning});
    }
}

/// Returns why `rank` sees no device although it should, and the remedy; empty if all is well.
std::string gpu_problem(const RankFacts& rank) {
    const backend::CudaVersions& cuda = rank.cuda;
    const bool has_driver = cuda.driver > 0;
    const bool is_old = has_driver && cuda.driver / 1000 < cuda.runtime / 1000;
    const std::string of_slurm = variable(rank, "SLURM_STEP_GPUS") + variable(rank, "SLURM_JOB_GPUS");
    const bool is_hidden = has_driver && rank.variables.count("CUDA_VISIBLE_DEVICES") > 0;
    const bool is_expected =
        !of_slurm.empty() || is_hidden || is_old || (rank.machine.nvidia_devices > 0 && !has_driver);
    if (!cuda.built || !rank.devices.empty() || !is_expected) {
        return "";
    }
    std::string text = fmt::format("the program sees no GPU: {}", cuda.problem);
    text += of_slurm.empty() ? "" : fmt::format("; Slurm gave GPUs (its numbers {})", of_slurm);
    text += is_hidden ? fmt::format("; CUDA_VISIBLE_DEVICES='{}'", variable(rank, "CUDA_VISIBLE_DEVICES")) : "";
    return text + (!has_driver ? ": libcuda.so.1, the driver's library, is not found; start a container with the "
                                 "host's driver (apptainer --nv, docker --gpus all)"
                   : is_old    ? fmt::format(": the driver serves CUDA {}, the program was built with {}; a newer "
                                                "driver, cuda-compat or a build with an older CUDA, or workers.device: cpu",
                                             cuda_version(cuda.driver), cuda_version(cuda.runtime))
                               : ": unset CUDA_VISIBLE_DEVICES; under Slurm ask for GPUs (--gpus-per-node=N)");
}

void check_gpus(const Facts& facts, Problems& problems) {
    std::set<std::string> known;
    const auto add = [&](bool stops, const std::string& node, const std::string& what) {
        if (!what.empty() && known.insert(what).second) {
            problems.push_back({stops, node + ": " + what});
        }
    };
    for (const RankFacts& rank : facts.ranks) {
        add(true, rank.node, gpu_problem(rank));
        if (rank.machine.nvidia_devices > 0 && !rank.cuda.built) {
            add(false, rank.node,
                "there are NVIDIA devices, but this program was built without CUDA: build it with -DFINCH_CUDA=ON "
                "(tools/install.sh --cuda tells what that needs)");
        }
        for (const backend::DeviceDescription& device : rank.devices) {
            if (!has_code_for(facts.architectures, device.capability)) {
                add(true, rank.node,
                    fmt::format("{} has compute capability {}.{}, and the program has code for {}: {}", device.name,
                                device.capability / 10, device.capability % 10, facts.architectures,
                                device.capability < 80
                                    ? "Finch needs 8.0 (A100) or later; workers.device: cpu serves"
                                    : fmt::format("build with -DCMAKE_CUDA_ARCHITECTURES={}", device.capability)));
            }
        }
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
            problems.push_back({false, fmt::format("{}: {} ranks share {} and wait for each other: more CPUs (srun "
                                                   "--cpus-per-task=N; mpirun --bind-to none), or fewer ranks",
                                                   node, count, counted(std::ssize(cpus[node]), "CPU"))});
            break;
        }
    }
}

void check_programs(const Facts& facts, Problems& problems) {
    const RankFacts& zero = facts.ranks.front();
    for (const RankFacts& rank : facts.ranks) {
        if (rank.program != zero.program) {
            problems.push_back({true, fmt::format("{} runs another program than {}: {} and {}: build once, in a folder "
                                                  "that all nodes share",
                                                  rank.node, zero.node, rank.program, zero.program)});
            break;
        }
    }
}

void check_files(const Facts& facts, Problems& problems) {
    for (const RankFacts& rank : facts.ranks) {
        const store::FileSystem& files = rank.file_system;
        if (!files.problem.empty()) {
            problems.push_back(
                {!files.writes, fmt::format("{}: {} ({}): {}", rank.node, files.path, files.kind, files.problem)});
            break;
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
    for (const auto check : {check_start, check_gpus, check_cpus, check_programs, check_files}) {
        check(facts, problems);
    }
    std::stable_partition(problems.begin(), problems.end(), [](const Problem& problem) { return problem.stops; });
    return problems;
}

}  // namespace finch::app
