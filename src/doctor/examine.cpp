
#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/message.hpp"
#include "finch/base/version.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/comm/node_memory.hpp"
#include "finch/config/trial_genomes.hpp"
#include "finch/data/dataset.hpp"
#include "finch/doctor/doctor.hpp"
#include "finch/energy/meter.hpp"
#include "finch/hdf5/file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace finch::doctor {
namespace {

namespace fs = std::filesystem;

bool begins(std::string_view text, std::string_view start) {
    return text.substr(0, start.size()) == start;
}

/// True if an environment variable can influence a run.
bool matters(const std::string& name) {
    static constexpr std::array families{"CUDA_",   "NVIDIA_", "NCCL_", "CUBLAS_", "CUDNN_", "OMP_",  "DNNL_",
                                         "ONEDNN_", "FINCH_",  "HDF5_", "UCX_",    "GOMP_",  "SLURM_"};
    static constexpr std::array alone{"LD_LIBRARY_PATH", "LD_PRELOAD",           "PMIX_RANK",
                                      "PMIX_NAMESPACE",  "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"};
    // Variables that mpirun and MPI_Init set for internal use.
    static constexpr std::array internal{"OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_pmix", "OMPI_MCA_initial_wdir",
                                         "OMPI_MCA_shmem_"};
    const auto starts = [&name](const char* start) { return begins(name, start); };
    if (begins(name, "OMPI_MCA_")) {
        return name == singleton_variable || std::none_of(internal.begin(), internal.end(), starts);
    }
    return std::any_of(families.begin(), families.end(), starts) ||
           std::find(alone.begin(), alone.end(), name) != alone.end();
}

/// False for Slurm variables that do not describe the layout of a run; true for all other variables.
bool is_of_use(const std::string& name) {
    static constexpr std::array of_slurm{"JOB_ID",         "JOB_NODELIST",   "JOB_NUM_NODES",
                                         "JOB_END_TIME",   "JOB_GPUS",       "JOB_CPUS_PER_NODE",
                                         "STEP_ID",        "STEP_NUM_TASKS", "STEP_TASKS_PER_NODE",
                                         "STEP_GPUS",      "NTASKS",         "NTASKS_PER_NODE",
                                         "TASKS_PER_NODE", "CPUS_PER_TASK",  "CPUS_ON_NODE",
                                         "CPU_BIND",       "GPUS",           "GPUS_PER_NODE",
                                         "GPUS_PER_TASK",  "GPUS_ON_NODE",   "TRES_PER_TASK",
                                         "TRES_BIND",      "MEM_PER_NODE",   "MEM_PER_CPU",
                                         "MPI_TYPE",       "PROCID",         "LOCALID",
                                         "NODEID",         "RESTART_COUNT",  "CLUSTER_NAME"};
    if (!begins(name, "SLURM_")) {
        return true;
    }
    return std::find(of_slurm.begin(), of_slurm.end(), std::string_view(name).substr(6)) != of_slurm.end();
}

std::string text_of(const energy::Found& found) {
    return found.meter ? "measured" : "not measured: " + found.problem;
}

RankFacts rank_facts() {
    RankFacts facts;
    facts.cuda = backend::cuda_versions();
    const comm::NcclVersion nccl = comm::nccl_version();
    facts.program = fmt::format("Finch {}, {}, {}", program_version(),
                                facts.cuda.built ? "with CUDA for " + backend::cuda_architectures() : "without CUDA",
                                nccl.built > 0 ? "with NCCL" : "without NCCL");
    facts.node = cluster::host_name();
    facts.machine = cluster::this_machine();
    facts.cpu_seconds = cluster::cpu_seconds_limit();
    try {
        facts.devices = backend::cuda_devices();
    } catch (const Error& error) {
        facts.cuda.problem = error.what();
    }
    const energy::Found cpus = energy::open_rapl(energy::powercap_folder(), 1);
    facts.energy = {text_of(cpus), cpus.is_closed, {}};
    for (const backend::DeviceDescription& device : facts.devices) {
        facts.energy.gpus.push_back(text_of(energy::open_nvml(energy::nvml_library(), device.uuid, 1)));
    }
    const cluster::Environment environment = cluster::Environment::of_this_process();
    for (const auto& [name, value] : environment.all()) {
        if (matters(name) && is_of_use(name)) {
            facts.variables.emplace(name, value);
        }
    }
    facts.file_system = store::try_file_system(fs::current_path());
    return facts;
}

/// Returns the facts about the data of the configuration `path`.
DataFacts data_facts(const fs::path& path) {
    DataFacts facts{.config = path.string(), .found = "", .problem = ""};
    try {
        const config::Config config = config::load(path);
        if (!config.trains()) {
            facts.found = "needs no data";
            return facts;
        }
        const data::Options options = config::trial_recipes(config).front().data;
        if (options.kind == data::Kind::generated) {
            facts.found = "draws its data";
            return facts;
        }
        const data::Dataset images = data::load(options, config.seed).training;
        facts.found = fmt::format("{} images of {}x{}x{} in {}", images.samples(), images.height, images.width,
                                  images.channels, data::places_text(options));
    } catch (const Error& error) {
        facts.problem = fmt::format("{}: {}", path.string(), error.what());
    }
    return facts;
}

/// Returns the facts about the data of all configurations in ./configs, the folder of the shipped configurations.
std::vector<DataFacts> all_data_facts() {
    std::vector<DataFacts> facts;
    std::vector<fs::path> paths;
    try {
        paths = list_folder("configs");
    } catch (const StorageError& error) {
        facts.push_back({.config = "configs", .found = "", .problem = error.what()});
    }
    std::erase_if(paths, [](const fs::path& path) { return path.extension() != ".yaml"; });
    std::transform(paths.begin(), paths.end(), std::back_inserter(facts), data_facts);
    return facts;
}

}  // namespace

int examine(const comm::Session& session) {
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
    facts.hdf5 = hdf5::library_version();
    facts.onednn = backend::onednn_version();
    std::string verdict;
    if (session.world_rank() == 0) {
        facts.data = all_data_facts();
        const std::vector<Problem> problems = find_problems(facts);
        fmt::print("{}", describe(facts, problems));
        verdict = !problems.empty() && problems.front().stops ? "stops" : "runs";
    }
    return comm::broadcast(MPI_COMM_WORLD, verdict) == "stops" ? 1 : 0;
}

}  // namespace finch::doctor
