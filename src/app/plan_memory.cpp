#include "finch/app/plan_memory.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/config/trial_genomes.hpp"
#include "finch/data/excerpt.hpp"
#include "finch/nn/model.hpp"
#include "finch/train/recipe.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <variant>

namespace finch::app {
namespace {

// Constants fitted to whole runs: the estimates are 0.94 to 1.07 times the measured memory
// (tools/bench/node_memory.sh).
constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
constexpr std::int64_t node_bytes = 70 * mebibyte;    ///< per node: mpirun, and the file pages of libraries
constexpr std::int64_t program_bytes = 6 * mebibyte;  ///< per rank, without data
constexpr std::int64_t plans_bytes = 6 * mebibyte;    ///< code and scratch memory of the networks' operations
constexpr std::int64_t test_batch = 256;              ///< batch size of world rank 0 on the test set
/// memory_left() reserves a twentieth of the node's limit for memory outside the ranks.
constexpr double asked_per_used = 20.0 / 19.0;

std::int64_t bytes_of(const data::Dataset& set) {
    return static_cast<std::int64_t>(data::block_bytes(set));
}

}  // namespace

Networks try_networks(const config::Config& config, const data::Dataset& images, backend::Device& device) {
    Networks networks;
    for (const search::Genome& genome : config::trial_genomes(config)) {
        ++networks.tried;
        try {
            const train::Recipe recipe = config.recipe(genome, 0);
            const int ranks = config.workers.ranks;
            const std::int64_t batch =
                train::rank_batch_of(train::global_batch_on(ranks, recipe.training), ranks, recipe.training);
            const nn::ModelPlan plan = train::plan_training(recipe, {images.height, images.width, images.channels},
                                                            images.outputs(), batch, device.blocks());
            if (search::broken_limit(config.limits, search::Quantity::parameters,
                                     static_cast<double>(plan.parameters)) != nullptr) {
                ++networks.too_large;
                continue;
            }
            networks.fewest_parameters =
                networks.possible == 0 ? plan.parameters : std::min(networks.fewest_parameters, plan.parameters);
            networks.most_parameters = std::max(networks.most_parameters, plan.parameters);
            networks.training_bytes = std::max(networks.training_bytes, nn::memory_bytes(device, plan));
            networks.prefetch_bytes =
                std::max(networks.prefetch_bytes, data::prefetch_bytes(recipe.data, images, batch));
            networks.snapshot_bytes = std::max(networks.snapshot_bytes, plan.snapshot_bytes);
            networks.weights_bytes = std::max(networks.weights_bytes, 4 * (plan.parameters + plan.buffers));
            networks.most_tensors =
                std::max(networks.most_tensors, std::ssize(plan.tensors) + std::ssize(plan.counters));
            networks.most_epochs = std::max(networks.most_epochs, recipe.training.epochs);
            networks.most_norms = recipe.training.watch ? 2 * networks.most_tensors : 0;
            networks.inherits = recipe.training.inherit;
            const nn::ModelPlan test =
                nn::plan_model(recipe.model, plan.input, plan.classes, test_batch, {}, device.blocks());
            networks.test_bytes =
                std::max(networks.test_bytes,
                         nn::memory_bytes(device, test) + data::prefetch_bytes(recipe.data, images, test_batch));
            ++networks.possible;
        } catch (const ConfigError&) {
            continue;  // run::check_data() ensures that some networks can exist
        }
    }
    return networks;
}

std::int64_t mebibytes(double bytes) {
    return static_cast<std::int64_t>(std::ceil(bytes / static_cast<double>(mebibyte)));
}

std::int64_t NodeMemory::asked_mebibytes() const {
    return mebibytes(bytes * asked_per_used);
}

std::int64_t NodeMemory::asked_mebibytes_per_cpu(long long cpus_of_rank) const {
    return mebibytes(bytes * asked_per_used / ranks / static_cast<double>(cpus_of_rank));
}

NodeMemory node_memory(const config::Config& config, const cluster::Layout& layout, const Networks& networks,
                       const data::Datasets& datasets) {
    std::map<std::string, int> ranks_of_node;
    int most_ranks = 0;
    for (const cluster::Place& place : layout.places) {
        most_ranks = std::max(most_ranks, ++ranks_of_node[place.node]);
    }
    const std::int64_t slots = config.workers.slots;
    const std::int64_t trainings =
        slots * (networks.training_bytes + networks.prefetch_bytes) + networks.snapshot_bytes;
    const std::int64_t of_rank = program_bytes + (config.trains() ? plans_bytes + trainings : 0);
    const std::int64_t first = std::max<std::int64_t>(0, networks.test_bytes - trainings);
    // The ranks of a node share one training set. Two copies of this set exist while it is read.
    const std::int64_t training_set = config.trains() ? bytes_of(datasets.training) : 0;
    const std::int64_t test_set = config.trains() ? bytes_of(datasets.test) : 0;
    const std::int64_t searching = most_ranks * of_rank + training_set + first;
    const std::int64_t reading = most_ranks * program_bytes + 2 * training_set;
    const auto slurm = cluster::Slurm::read(cluster::Environment::of_this_process());
    return {.bytes = static_cast<double>(node_bytes + std::max(searching, reading) + test_set),
            .ranks = most_ranks,
            .cpus = config.workers.threads > 0 ? config.workers.threads : slurm.cpus_per_task.value_or(1)};
}

std::string memory_text(const config::Config& config, const NodeMemory& memory) {
    const std::string node = counted(memory.ranks, "rank");
    if (std::holds_alternative<config::CommandObjective>(config.objective)) {
        return fmt::format("memory: Finch itself takes at most {} MiB on a node of {}; add that of {}\n",
                           mebibytes(memory.bytes), node, counted(memory.ranks * config.workers.slots, "program"));
    }
    // --mem cannot be combined with the --mem-per-cpu of jobs/evolve.sbatch.
    return fmt::format(
        "memory: at most {} MiB on a node of {}: --mem-per-cpu={}M with --cpus-per-task={}, or, in a script "
        "that "
        "says nothing of memory, --mem={}M\n",
        mebibytes(memory.bytes), node, memory.asked_mebibytes_per_cpu(memory.cpus), memory.cpus,
        memory.asked_mebibytes());
}

std::string pixels_text(const data::Options& options, const data::Dataset& training) {
    constexpr std::int64_t much = std::int64_t{1} << 30;
    const std::int64_t bytes = data::pixel_bytes(training);
    if (options.kind == data::Kind::generated || options.memory == data::Memory::streamed || bytes < much) {
        return "";
    }
    return fmt::format(
        "the pixels are {} MiB, twice while they are read: data.memory: streamed leaves them on the disk\n",
        mebibytes(static_cast<double>(bytes)));
}

}  // namespace finch::app
