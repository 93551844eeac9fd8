#include "finch/app/plan.hpp"

#include "finch/app/checks.hpp"
#include "finch/app/devices.hpp"
#include "finch/app/evolve.hpp"
#include "finch/app/first_guesses.hpp"
#include "finch/app/programs.hpp"
#include "finch/app/reuse.hpp"
#include "finch/app/startup.hpp"
#include "finch/base/format.hpp"
#include "finch/cluster/allocation.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/config/trial_genomes.hpp"
#include "finch/nn/model.hpp"
#include "finch/train/training.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace finch::app {
namespace {

// Measured (docs/measurements.md, "Memory of a node").
constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
constexpr std::int64_t node_bytes = 70 * mebibyte;    ///< once a node: libraries, as files are counted, and mpirun
constexpr std::int64_t program_bytes = 6 * mebibyte;  ///< a rank without data
constexpr std::int64_t plans_bytes = 6 * mebibyte;    ///< code and scratch of the networks' operations
constexpr std::int64_t test_batch = 256;  ///< in which world rank 0 measures the best network on the test set
/// memory_left() keeps a twentieth of the node's limit for others than the ranks.
constexpr double asked_per_used = 20.0 / 19.0;

/// "search ends after 200 evaluations or 2 hours".
std::string budget_text(const island::Budget& budget) {
    std::vector<std::string> ends;
    const auto add = [&ends](const auto& amount, const char* format) {
        if (amount) {
            ends.push_back(fmt::format(fmt::runtime(format), *amount));
        }
    };
    add(budget.evaluations, "{} evaluations");
    add(budget.generations, "{} evaluations of each worker");
    add(budget.epochs, "{} epochs of all trainings");
    add(budget.hours, "{} hours");
    add(budget.node_hours, "{} node hours");
    add(budget.target_loss, "a loss of {}");
    return fmt::format("the search ends after {}\n", fmt::join(ends, " or "));
}

struct Question {
    std::vector<std::string> node_of_rank;
    int gpus_per_node = 0;
};

/// The nodes and their GPUs: what the user asks about, else what the allocation has.
Question question_of(const PlanOptions& options) {
    const auto environment = cluster::Environment::of_this_process();
    Question question{{}, options.gpus_per_node};
    if (!options.nodes && !options.ranks_per_node) {
        question.node_of_rank = cluster::ranks_of_allocation(environment);
        if (question.node_of_rank.empty()) {
            throw ConfigError("this is no Slurm allocation: say --nodes N --ranks-per-node R [--gpus-per-node G]");
        }
        if (question.gpus_per_node == 0) {
            question.gpus_per_node = static_cast<int>(environment.number("SLURM_GPUS_ON_NODE").value_or(0));
        }
        return question;
    }
    for (int node = 0; node < options.nodes.value_or(1); ++node) {
        question.node_of_rank.insert(question.node_of_rank.end(),
                                     static_cast<std::size_t>(options.ranks_per_node.value_or(1)),
                                     fmt::format("node{}", node + 1));
    }
    return question;
}

/// As evolve would decide with such GPUs on each node, visible to all its ranks.
cluster::DeviceMap map_devices(const config::Config& config, const cluster::Layout& layout, int gpus_per_node) {
    if (!config.trains()) {
        cluster::DeviceMap map;
        map.device.assign(layout.places.size(), cluster::no_device);
        return map;
    }
    cluster::SeenDevices seen;
    for (int gpu = 0; gpu < gpus_per_node; ++gpu) {
        seen.uuids.push_back(fmt::format("GPU-{}", gpu));
    }
    seen.problem = "--gpus-per-node is 0";
    seen.has_nccl = comm::has_nccl();
    return cluster::map_devices(layout.places, std::vector(layout.places.size(), seen), device_wishes(config));
}

/// Refuses a precision that no processor has. A remark where this one lacks it: plan may run on a login node.
std::string precision_text(const config::Config& config, const backend::Device& device) {
    bool lacks = false;
    for (const train::Recipe& recipe : config::trial_recipes(config)) {
        const train::Precision precision = recipe.training.precision;
        if (precision == train::Precision::bfloat16 && !device.supports(precision)) {
            lacks = true;
        } else {
            train::check_precision(precision, device);
        }
    }
    return lacks ? "remark: training.precision: bfloat16 needs AVX512-BF16 or AMX, which this machine lacks; finch "
                   "evolve refuses nodes without\n"
                 : "";
}

std::string table(const config::Config& config, const cluster::Layout& layout, const cluster::DeviceMap& devices) {
    constexpr std::size_t most = 64;
    std::string text = fmt::format("{} ranks, {} workers of {} ranks, {} islands\n", layout.places.size(),
                                   layout.leaders.size(), config.workers.ranks, layout.islands);
    text += fmt::format("{:>6}  {:<20} {:>6} {:>8} {:>6} {:>7}  {}\n", "rank", "node", "local", "worker", "group",
                        "island", "device");
    for (std::size_t rank = 0; rank < std::min(most, layout.places.size()); ++rank) {
        const cluster::Place& place = layout.places[rank];
        text += fmt::format("{:>6}  {:<20} {:>6} {:>8} {:>6} {:>7}  {}\n", rank, place.node, place.local_rank,
                            place.worker, place.group_rank == 0 ? "leads" : std::to_string(place.group_rank),
                            place.island, devices.name(rank));
    }
    if (layout.places.size() > most) {
        text += fmt::format("  … and {} more ranks\n", layout.places.size() - most);
    }
    return text;
}

/// The networks that the space was found to have.
struct Networks {
    std::size_t tried = 0;
    std::size_t possible = 0;
    std::int64_t fewest_parameters = 0;
    std::int64_t most_parameters = 0;
    std::int64_t training_bytes = 0;  ///< of the one that takes most, on one rank
    std::int64_t prefetch_bytes = 0;  ///< of the host, beside them
    std::int64_t snapshot_bytes = 0;
    std::int64_t test_bytes = 0;  ///< of the one that takes most on the test set
};

Networks try_networks(const config::Config& config, const data::Dataset& images, backend::Device& device) {
    Networks networks;
    for (const search::Genome& genome : config::trial_genomes(config)) {
        ++networks.tried;
        try {
            const train::Recipe recipe = config.recipe(genome, 0);
            const int ranks = config.workers.ranks;
            const std::int64_t batch =
                train::rank_batch_of(train::global_batch_on(ranks, recipe.training), ranks, recipe.training);
            const nn::ModelPlan plan =
                train::plan_training(recipe, {images.height, images.width, images.channels}, images.outputs(), batch);
            networks.fewest_parameters =
                networks.possible == 0 ? plan.parameters : std::min(networks.fewest_parameters, plan.parameters);
            networks.most_parameters = std::max(networks.most_parameters, plan.parameters);
            networks.training_bytes = std::max(networks.training_bytes, nn::memory_bytes(device, plan));
            networks.prefetch_bytes =
                std::max(networks.prefetch_bytes, data::prefetch_bytes(recipe.data, images, batch));
            networks.snapshot_bytes = std::max(networks.snapshot_bytes, plan.snapshot_bytes);
            const nn::ModelPlan test = nn::plan_model(recipe.model, plan.input, plan.classes, test_batch);
            networks.test_bytes =
                std::max(networks.test_bytes, test.bytes + data::prefetch_bytes(recipe.data, images, test_batch));
            ++networks.possible;
        } catch (const ConfigError&) {
            continue;  // check_data() knows that some can exist
        }
    }
    return networks;
}

std::int64_t bytes_of(const data::Dataset& set) {
    return static_cast<std::int64_t>(data::block_bytes(set));
}

std::int64_t mebibytes(double bytes) {
    return static_cast<std::int64_t>(std::ceil(bytes / static_cast<double>(mebibyte)));
}

/// In bytes.
struct Memory {
    std::int64_t rank = program_bytes;  ///< of each while it searches, without data
    std::int64_t training_set = 0;
    std::int64_t test_set = 0;
    std::int64_t first = 0;  ///< that world rank 0 takes besides
};

/// What to ask Slurm for: per node, and per CPU.
std::string memory_text(const config::Config& config, const cluster::Layout& layout, const Memory& memory) {
    std::map<std::string, int> ranks_of_node;
    int most_ranks = 0;
    for (const cluster::Place& place : layout.places) {
        most_ranks = std::max(most_ranks, ++ranks_of_node[place.node]);
    }
    // The ranks of a node share one training set, of which there are two while it is read.
    const std::int64_t searching = most_ranks * memory.rank + memory.training_set + memory.first;
    const std::int64_t reading = most_ranks * program_bytes + 2 * memory.training_set;
    const auto node = static_cast<double>(node_bytes + std::max(searching, reading) + memory.test_set);
    const auto slurm = cluster::Slurm::read(cluster::Environment::of_this_process());
    const auto cpus = config.workers.threads > 0 ? config.workers.threads : slurm.cpus_per_task.value_or(1);
    if (std::holds_alternative<config::CommandObjective>(config.objective)) {
        return fmt::format(
            "memory: Finch itself takes at most {} MiB on a node of {} rank{}; add that of {} program{}\n",
            mebibytes(node), most_ranks, most_ranks == 1 ? "" : "s", most_ranks * config.workers.slots,
            most_ranks * config.workers.slots == 1 ? "" : "s");
    }
    return fmt::format(
        "memory: at most {} MiB on a node of {} rank{}: --mem={}M, or --mem-per-cpu={}M with --cpus-per-task={}\n",
        mebibytes(node), most_ranks, most_ranks == 1 ? "" : "s", mebibytes(node * asked_per_used),
        mebibytes(node * asked_per_used / most_ranks / static_cast<double>(cpus)), cpus);
}

/// What search.reuse would bring. `fingerprint`: nothing where the data are not here.
std::string reuse_text(const config::Config& config, const std::optional<std::string>& fingerprint) {
    const store::RunDirectory directory(run_directory_of(config, {}));
    std::string text;
    for (const std::string& note : read_other_runs(config, directory, true, fingerprint).notes) {
        text += note + "\n";
    }
    return text;
}

/// Where the pixels are much of the memory, and need not be.
std::string pixels_text(const data::Options& options, const data::Datasets& datasets) {
    constexpr std::int64_t much = std::int64_t{1} << 30;
    const auto bytes = static_cast<std::int64_t>(datasets.training.pixels.size());
    if (options.kind == data::Kind::generated || bytes < much) {
        return "";
    }
    return fmt::format(
        "the pixels are {} MiB, twice while they are read: data.memory: streamed leaves them on the disk\n",
        mebibytes(static_cast<double>(bytes)));
}

/// What is known of images, networks and memory; a remark where the data are not here.
std::string training_text(const config::Config& config, const cluster::Layout& layout, bool uses_devices) {
    const auto cpu = make_device(cluster::DeviceKind::cpu, cluster::no_device, 1);
    const std::string remark = uses_devices ? "" : precision_text(config, *cpu);
    const data::Options options = data_options(config);
    for (const std::string& path : data::paths_of(options)) {
        if (options.kind != data::Kind::generated && !path.empty() && !std::filesystem::exists(path)) {
            return remark +
                   fmt::format("remark: {} is not here yet: images, classes and memory are not known\n", path) +
                   reuse_text(config, std::nullopt);
        }
    }
    const data::Datasets datasets = data::load(options, config.seed);
    check_data(config, datasets);
    const std::string reused = reuse_text(config, datasets.fingerprint);
    const Networks networks = try_networks(config, datasets.training, *cpu);
    std::string text = remark + fmt::format("data: {}\n{}", data_text(config, datasets), reused);
    for (const std::string& line : systems_lines(config, datasets)) {
        text += line + "\n";
    }
    if (const std::string warning = normalisation_warning(config, datasets.training); !warning.empty()) {
        text += fmt::format("warning: {}\n", warning);
    }
    text += fmt::format("networks: {} to {} parameters ({} of {} genomes tried give a network)\n",
                        networks.fewest_parameters, networks.most_parameters, networks.possible, networks.tried);
    const std::int64_t trainings = config.workers.slots * networks.training_bytes;
    if (uses_devices) {
        return text + fmt::format("memory: at most {} MiB of each GPU, {} slot(s); that of the nodes is not known\n",
                                  mebibytes(static_cast<double>(trainings)), config.workers.slots);
    }
    const std::int64_t searching = trainings + config.workers.slots * networks.prefetch_bytes + networks.snapshot_bytes;
    text += memory_text(config, layout,
                        {.rank = program_bytes + plans_bytes + searching,
                         .training_set = bytes_of(datasets.training),
                         .test_set = bytes_of(datasets.test),
                         .first = std::max<std::int64_t>(0, networks.test_bytes - searching)});
    return text + pixels_text(options, datasets);
}

}  // namespace

int plan(const PlanOptions& options) {
    std::vector<std::string> notes;
    const config::Config config = with_first_guesses(config::load(options.config, options.settings), {}, 0, notes);
    for (const std::string& note : notes) {
        fmt::print("{}\n", note);
    }
    check_search(config, std::nullopt);
    if (const auto* const command = std::get_if<config::CommandObjective>(&config.objective)) {
        const auto prepared = prepare_programs(config, evaluate::read_templates(*command));
        evaluate::check_program(prepared->line.program());
        fmt::print("{}", reuse_text(config, prepared->fingerprint));
    } else if (!config.trains()) {
        fmt::print("{}", reuse_text(config, std::nullopt));
    }
    const Question question = question_of(options);
    const cluster::Layout layout = cluster::make_layout(question.node_of_rank, layout_options(config));
    const cluster::DeviceMap devices = map_devices(config, layout, question.gpus_per_node);
    std::string text = table(config, layout, devices);
    text += config.trains() ? training_text(config, layout, devices.uses_devices()) : memory_text(config, layout, {});
    text += budget_text(config.budget);
    for (const auto* warnings : {&layout.warnings, &devices.warnings}) {
        for (const std::string& warning : *warnings) {
            text += "warning: " + warning + "\n";
        }
    }
    fmt::print("{}the run directory would be {}\n", text, run_directory_of(config, {}).string());
    return exit_done;
}

}  // namespace finch::app
