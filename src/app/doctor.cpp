// Gathers and prints the facts of finch doctor.
#include "finch/app/doctor.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/message.hpp"
#include "finch/base/run_state.hpp"
#include "finch/base/version.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/comm/node_memory.hpp"
#include "finch/energy/meter.hpp"
#include "finch/hdf5/file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

namespace finch::app {
namespace {

namespace fs = std::filesystem;

/// True if an environment variable can influence a run. Variables that mpirun sets for internal use do not count.
bool matters(const std::string& name) {
    static constexpr std::array families{"CUDA_", "NVIDIA_", "NCCL_",   "CUBLAS_", "CUDNN_",
                                         "OMP_",  "DNNL_",   "ONEDNN_", "FINCH_",  "HDF5_",
                                         "UCX_",  "GOMP_",   "LD_",     "SLURM_",  "OMPI_"};
    static constexpr std::array internal{"OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_pmix", "OMPI_MCA_initial_wdir",
                                         "OMPI_MCA_shmem_"};
    const auto starts = [&name](const char* start) { return name.starts_with(start); };
    return std::any_of(families.begin(), families.end(), starts) &&
           std::none_of(internal.begin(), internal.end(), starts);
}

std::string text_of(const energy::Found& found) {
    return found.meter ? "measured" : "not measured: " + found.problem;
}

RankFacts rank_facts() {
    RankFacts facts;
    facts.cuda = backend::cuda_versions();
    facts.program = fmt::format("Finch {}, {}, {}", program_version(),
                                facts.cuda.built ? "with CUDA for " + backend::cuda_architectures() : "without CUDA",
                                comm::has_nccl() ? "with NCCL" : "without NCCL");
    facts.machine = cluster::this_machine();
    facts.cpu_seconds = cluster::cpu_seconds_limit();
    try {
        facts.devices = backend::cuda_devices();
    } catch (const Error& error) {
        facts.cuda.problem = error.what();
    }
    facts.energy_of_cpus = text_of(energy::open_rapl(energy::powercap_folder(), 1));
    for (const backend::DeviceDescription& device : facts.devices) {
        facts.energy_of_gpus.push_back(text_of(energy::open_nvml(energy::nvml_library(), device.uuid, 1)));
    }
    const cluster::Environment environment = cluster::Environment::of_this_process();
    for (const auto& [name, value] : environment.all()) {
        if (matters(name)) {
            facts.variables.emplace(name, value);
        }
    }
    facts.file_system = store::try_file_system(fs::current_path());
    return facts;
}

Facts gather_facts() {
    Facts facts;
    for (const std::string& packed : comm::gather_all(MPI_COMM_WORLD, to_message(rank_facts()))) {
        facts.ranks.push_back(from_message<RankFacts>(packed));
    }
    const std::vector<std::string> nodes = comm::names_of_nodes(MPI_COMM_WORLD);
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        facts.ranks[rank].node = nodes[rank];
    }
    facts.architectures = backend::cuda_architectures();
    facts.mpi = comm::mpi_version();
    facts.nccl = comm::nccl_version();
    return facts;
}

std::string row(const std::string& name, const std::string& value) {
    return fmt::format("  {:<18} {}\n", name, value);
}

std::string size_text(std::int64_t bytes) {
    constexpr double mebibyte = 1 << 20;
    const auto number = static_cast<double>(bytes);
    return bytes == 0                 ? "unlimited"
           : number < 1024 * mebibyte ? fmt::format("{:.3g} MiB", number / mebibyte)
                                      : fmt::format("{:.1f} GiB", number / mebibyte / 1024);
}

/// Converts a version number of cuDNN or NCCL to text: 91900 → "9.19.0", 0 → "none".
std::string dotted(std::int64_t version) {
    return version == 0 ? "none" : fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string machine_text(const RankFacts& rank) {
    const cluster::Machine& machine = rank.machine;
    return fmt::format("machine {}\n", rank.node) +
           row("CPU", fmt::format("{}, {}, {}", machine.cpu.empty() ? "unknown" : machine.cpu,
                                  machine.instructions.empty() ? "no known vectors" : machine.instructions,
                                  machine.bfloat16.empty() ? "no bfloat16" : "bfloat16 by " + machine.bfloat16)) +
           row("cores", fmt::format("{} of {} usable: {}", machine.cpus.size(), machine.cpus_online,
                                    cluster::cpu_list(machine.cpus))) +
           row("memory", fmt::format("{}, limit of this job or container: {}", size_text(machine.memory_bytes),
                                     size_text(machine.memory_limit_bytes))) +
           row("limits", fmt::format("address space (ulimit -v) {}, open files (ulimit -n) {}, CPU time (ulimit -t) {}",
                                     size_text(machine.address_space_bytes),
                                     machine.open_files == 0 ? "unlimited" : fmt::format("{}", machine.open_files),
                                     rank.cpu_seconds == 0 ? "unlimited" : fmt::format("{} s", rank.cpu_seconds)));
}

std::string cuda_text(const Facts& facts) {
    const RankFacts& zero = facts.ranks.front();
    std::string text = "CUDA\n" + row("backend", zero.cuda.built ? "built for " + facts.architectures : "not built");
    if (zero.cuda.built) {
        text += row("driver", zero.cuda.driver == 0 ? "none found (libcuda.so.1)"
                                                    : "serves CUDA " + cuda_version(zero.cuda.driver));
        text += row("versions",
                    fmt::format("CUDA {}, cuDNN {} (built with {}), cuBLASLt {}, NCCL {} (built with {})",
                                cuda_version(zero.cuda.runtime), dotted(zero.cuda.cudnn), dotted(zero.cuda.cudnn_built),
                                dotted(zero.cuda.cublas), dotted(facts.nccl.loaded), dotted(facts.nccl.built)));
    }
    text += row("device files", fmt::format("{}", zero.machine.nvidia_devices));
    if (zero.devices.empty()) {
        text += row("devices", zero.cuda.problem.empty() ? "none" : "none: " + zero.cuda.problem);
    }
    for (std::size_t i = 0; i < zero.devices.size(); ++i) {
        const backend::DeviceDescription& device = zero.devices[i];
        text +=
            row(fmt::format("device {}", device.index),
                fmt::format("{}, {}, {}, capability {}.{}, PCI {}, reaches {} others{}; energy {}", device.name,
                            device.uuid, size_text(device.memory_bytes), device.capability / 10, device.capability % 10,
                            device.pci_bus_id, std::count(device.reaches.begin(), device.reaches.end(), true),
                            has_code_for(facts.architectures, device.capability) ? "" : ", NO CODE FOR IT",
                            zero.energy_of_gpus[i]));
    }
    return text;
}

std::string libraries_text(const Facts& facts) {
    std::string text = "libraries\n";
    text += row("MPI", facts.mpi.library);
    text += row("MPI threads", facts.mpi.threading);
    text += row("ranks", fmt::format("{}", facts.mpi.ranks));
    text += row("HDF5", hdf5::library_version());
    text += row("oneDNN", backend::onednn_version()) + "environment\n";
    for (const auto& [name, value] : facts.ranks.front().variables) {
        text += name.starts_with("SLURM_") ? "" : fmt::format("  {}={}\n", name, value);
    }
    return text;
}

std::string files_text(const store::FileSystem& files) {
    const auto word = [](bool works) { return works ? "yes" : "NO"; };
    return "files\n" +
           row("working directory",
               fmt::format("{} ({}, {} free)", files.path, files.kind, size_text(files.free_bytes))) +
           row("can",
               fmt::format("write: {}, lock: {}, sync: {} (1 MiB in {:.1f} ms), hard links: {}", word(files.writes),
                           word(files.locks), word(files.syncs), 1e3 * files.sync_seconds, word(files.hard_links)));
}

/// Returns a line for each rank if there are several ranks.
std::string ranks_text(const std::vector<RankFacts>& ranks) {
    constexpr std::size_t most = 256;
    std::string text = ranks.size() > 1 ? "ranks\n" : "";
    for (std::size_t i = 0; ranks.size() > 1 && i < std::min(most, ranks.size()); ++i) {
        std::string devices;
        for (const backend::DeviceDescription& device : ranks[i].devices) {
            devices += " " + device.uuid;
        }
        text += row(fmt::format("rank {}", i),
                    fmt::format("{}, cores {}, devices:{}", ranks[i].node, cluster::cpu_list(ranks[i].machine.cpus),
                                devices.empty() ? " none" : devices));
    }
    return text;
}

std::string problems_text(const std::vector<Problem>& problems) {
    std::string text = problems.empty() ? "nothing is wrong\n" : "";
    for (const Problem& problem : problems) {
        text += fmt::format("{}: {}\n", problem.stops ? "wrong, and it stops a run" : "worth knowing", problem.what);
    }
    return text;
}

}  // namespace

std::string cuda_version(int version) {
    return version == 0 ? "none" : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string describe(const Facts& facts, const std::vector<Problem>& problems) {
    const RankFacts& zero = facts.ranks.front();
    return zero.program + "\n" + machine_text(zero) + cuda_text(facts) + "energy\n" +
           row("CPUs (RAPL)", zero.energy_of_cpus) + libraries_text(facts) + files_text(zero.file_system) +
           ranks_text(facts.ranks) + "\n" + problems_text(problems);
}

int doctor(const comm::Session& session) {
    const Facts facts = gather_facts();
    std::string verdict;
    if (session.world_rank() == 0) {
        const std::vector<Problem> problems = find_problems(facts);
        fmt::print("{}", describe(facts, problems));
        verdict = !problems.empty() && problems.front().stops ? "stops" : "runs";
    }
    return comm::broadcast(MPI_COMM_WORLD, verdict) == "stops" ? exit_fault : exit_done;
}

}  // namespace finch::app
