// The output of `finch doctor`.
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/doctor/doctor.hpp"

#include <algorithm>

namespace finch::doctor {
namespace {

constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;

std::string row(const std::string& name, const std::string& value) {
    return fmt::format("  {:<18} {}\n", name, value);
}
std::string size_text(std::int64_t bytes) {
    const auto number = static_cast<double>(bytes);
    return number < gibibyte ? fmt::format("{:.3g} MiB", 1024 * number / gibibyte)
                             : fmt::format("{:.1f} GiB", number / gibibyte);
}
std::string limit_text(std::int64_t bytes) {
    return bytes == 0 ? "unlimited" : size_text(bytes);
}
/// Converts a version number to text: 91900 → "9.19.0".
std::string dotted(std::int64_t version) {
    return version == 0 ? "none" : fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string machine_text(const RankFacts& rank) {
    const cluster::Machine& machine = rank.machine;
    std::string text = fmt::format("machine {}\n", rank.node);
    text += row("CPU", fmt::format("{}, {}, {}", machine.cpu.empty() ? "unknown" : machine.cpu,
                                   machine.instructions.empty() ? "no known vectors" : machine.instructions,
                                   machine.bfloat16.empty() ? "no bfloat16" : "bfloat16 by " + machine.bfloat16));
    text += row("cores", fmt::format("{} of {} usable: {}", machine.cpus.size(), machine.cpus_online,
                                     cluster::cpu_list(machine.cpus)));
    text += row("memory", fmt::format("{}, limit of this job or container: {}", size_text(machine.memory_bytes),
                                      limit_text(machine.memory_limit_bytes)));
    text += row("limits", fmt::format("address space {}, locked memory {}, open files {}, CPU time of a process {}",
                                      limit_text(machine.address_space_bytes), limit_text(machine.locked_bytes),
                                      machine.open_files == 0 ? "unlimited" : fmt::format("{}", machine.open_files),
                                      rank.cpu_seconds == 0 ? "unlimited" : fmt::format("{} s", rank.cpu_seconds)));
    return text;
}

/// Returns a row for each device, with the other devices that it can access directly (peer access).
std::string peer_access(const std::vector<backend::DeviceDescription>& devices) {
    std::string text;
    for (const backend::DeviceDescription& device : devices) {
        std::vector<std::string> others;
        for (std::size_t other = 0; other < device.reaches.size(); ++other) {
            if (static_cast<int>(other) != device.index) {
                others.push_back(fmt::format("{}: {}", other, device.reaches[other] ? "yes" : "no"));
            }
        }
        text += row(fmt::format("peers of {}", device.index), fmt::format("{}", fmt::join(others, ", ")));
    }
    return text;
}

std::string cuda_text(const Facts& facts) {
    const RankFacts& zero = facts.ranks.front();
    std::string text = "CUDA\n";
    text += row("backend", zero.cuda.built ? fmt::format("built for {}", facts.architectures) : "not built");
    if (zero.cuda.built) {
        text += row("driver", zero.cuda.driver == 0 ? "none found (libcuda.so.1)"
                                                    : fmt::format("serves CUDA {}", cuda_version(zero.cuda.driver)));
        text += row("runtime", cuda_version(zero.cuda.runtime));
        text += row("cuDNN", fmt::format("{}, built with {}", dotted(zero.cuda.cudnn), dotted(zero.cuda.cudnn_built)));
        text += row("cuBLASLt", dotted(zero.cuda.cublas));
        text += row("NCCL", facts.nccl.built == 0 ? "not built"
                                                  : fmt::format("{}, built with {}", dotted(facts.nccl.loaded),
                                                                dotted(facts.nccl.built)));
    }
    text += row("device files", fmt::format("{}", zero.machine.nvidia_devices));
    if (zero.devices.empty()) {
        text += row("devices", zero.cuda.problem.empty() ? "none" : fmt::format("none: {}", zero.cuda.problem));
    }
    for (const backend::DeviceDescription& device : zero.devices) {
        text += row(fmt::format("device {}", device.index),
                    fmt::format("{}, {}, {}, capability {}.{}, PCI {}{}", device.name, device.uuid,
                                size_text(device.memory_bytes), device.capability / 10, device.capability % 10,
                                device.pci_bus_id,
                                has_code_for(facts.architectures, device.capability) ? "" : ", NO CODE FOR IT"));
    }
    return text + (zero.devices.size() > 1 ? peer_access(zero.devices) : "");
}

std::string energy_text(const EnergyFacts& energy) {
    std::string text = "energy\n" + row("CPUs (RAPL)", energy.cpus);
    for (std::size_t i = 0; i < energy.gpus.size(); ++i) {
        text += row(fmt::format("device {} (NVML)", i), energy.gpus[i]);
    }
    return text;
}

std::string libraries_text(const Facts& facts) {
    const auto& variables = facts.ranks.front().variables;
    const auto launcher = variables.find(singleton_variable);
    const bool is_alone = launcher != variables.end() && launcher->second == "singleton";
    const bool has_pmix = variables.count("PMIX_RANK") > 0 && !is_alone;
    std::string text = "libraries\n";
    text += row("MPI", facts.mpi.library);
    text += row("MPI threads", facts.mpi.threading);
    text += row("ranks", fmt::format("{}, {}", facts.mpi.ranks,
                                     is_alone   ? "started by itself, without srun or mpirun"
                                     : has_pmix ? "started through PMIx"
                                                : "not started through PMIx"));
    text += row("HDF5", facts.hdf5);
    text += row("oneDNN", facts.onednn);
    return text;
}

std::string variables_text(const RankFacts& rank) {
    std::string text = "environment\n";
    for (const auto& [name, value] : rank.variables) {
        if (name != singleton_variable) {
            text += fmt::format("  {}={}\n", name, value);
        }
    }
    return text;
}

std::string files_text(const Facts& facts) {
    const store::FileSystem& files = facts.ranks.front().file_system;
    const auto word = [](bool works) { return works ? "yes" : "NO"; };
    std::string text = "files\n";
    text +=
        row("working directory", fmt::format("{} ({}, {} free)", files.path, files.kind, size_text(files.free_bytes)));
    text +=
        row("can", fmt::format("write: {}, lock: {}, sync: {} (1 MiB in {:.1f} ms), hard links: {}", word(files.writes),
                               word(files.locks), word(files.syncs), 1e3 * files.sync_seconds, word(files.hard_links)));
    for (const DataFacts& data : facts.data) {
        text += row(data.config, data.problem.empty() ? data.found : "not usable, see below");
    }
    return text;
}

/// Returns a line for each rank if there are several ranks.
std::string ranks_text(const Facts& facts) {
    if (facts.ranks.size() < 2) {
        return "";
    }
    std::string text = "ranks\n";
    constexpr std::size_t most = 256;
    for (std::size_t i = 0; i < std::min(most, facts.ranks.size()); ++i) {
        const RankFacts& rank = facts.ranks[i];
        const auto visible = rank.variables.find("CUDA_VISIBLE_DEVICES");
        std::vector<std::string> uuids;
        for (const backend::DeviceDescription& device : rank.devices) {
            uuids.push_back(device.uuid);
        }
        text += row(fmt::format("rank {}", i),
                    fmt::format("{}, cores {}, CUDA_VISIBLE_DEVICES {}, devices: {}", rank.node,
                                cluster::cpu_list(rank.machine.cpus),
                                visible == rank.variables.end() ? "unset" : "'" + visible->second + "'",
                                uuids.empty() ? "none" : fmt::format("{}", fmt::join(uuids, " "))));
    }
    return text;
}

std::string problems_text(const std::vector<Problem>& problems) {
    if (problems.empty()) {
        return "nothing is wrong\n";
    }
    std::string text;
    for (const bool stops : {true, false}) {
        std::string lines;
        for (const Problem& problem : problems) {
            if (problem.stops == stops) {
                lines += fmt::format("  - {}\n", problem.what);
                lines += problem.mend.empty() ? "" : fmt::format("    mend: {}\n", problem.mend);
            }
        }
        if (!lines.empty()) {
            text += (stops ? "wrong, and it stops a run\n" : "worth knowing\n") + lines;
        }
    }
    return text;
}

}  // namespace

std::string cuda_version(int version) {
    return version == 0 ? "none" : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string describe(const Facts& facts, const std::vector<Problem>& problems) {
    const RankFacts& zero = facts.ranks.front();
    return zero.program + "\n" + machine_text(zero) + cuda_text(facts) + energy_text(zero.energy) +
           libraries_text(facts) + variables_text(zero) + files_text(facts) + ranks_text(facts) + "\n" +
           problems_text(problems);
}

}  // namespace finch::doctor
