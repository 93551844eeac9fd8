#include "finch/app/verbs.hpp"

#include "finch/app/startup.hpp"
#include "finch/base/format.hpp"
#include "finch/cluster/allocation.hpp"
#include "finch/report/csv.hpp"
#include "finch/report/status.hpp"
#include "finch/report/tables.hpp"
#include "finch/store/resume.hpp"

#include <algorithm>

namespace finch::app {
namespace {

/// The node of each rank: what the user asks about, else what the allocation has.
std::vector<std::string> nodes_asked_about(const PlanOptions& options) {
    if (!options.nodes && !options.ranks_per_node) {
        std::vector<std::string> nodes = cluster::ranks_of_allocation(cluster::Environment::of_this_process());
        if (nodes.empty()) {
            throw ConfigError("this is no Slurm allocation: say --nodes N --ranks-per-node R [--gpus-per-node G]");
        }
        return nodes;
    }
    std::vector<std::string> nodes;
    for (int node = 0; node < options.nodes.value_or(1); ++node) {
        nodes.insert(nodes.end(), static_cast<std::size_t>(options.ranks_per_node.value_or(1)),
                     fmt::format("node{}", node + 1));
    }
    return nodes;
}

/// The memory of the largest of some random networks of the space, in bytes on one rank; 0 where nothing is trained.
std::int64_t largest_training(const config::Config& config) {
    if (!config.trains()) {
        return 0;
    }
    constexpr int tries = 200;
    RandomStream random(config.seed, Purpose::test);
    std::int64_t largest = 0;
    data::Datasets datasets;
    for (int i = 0; i < tries; ++i) {
        const search::Genome genome = search::random_genome(config.space, random);
        try {
            const train::Recipe recipe = config.recipe(genome, 0);
            if (datasets.training.labels.empty()) {
                datasets = data::load(recipe.data, config.seed);
            }
            const data::Dataset& images = datasets.training;
            const std::int64_t ranks = config.workers.ranks;
            const std::int64_t batch =
                recipe.training.batch_size_per_rank.value_or((recipe.training.batch_size + ranks - 1) / ranks);
            const nn::ModelPlan plan =
                nn::plan_model(recipe.model, {images.height, images.width, images.channels}, images.classes, batch);
            largest = std::max(largest, plan.bytes);
        } catch (const ConfigError&) {
            if (datasets.training.labels.empty()) {
                throw;
            }
        }
    }
    return largest + static_cast<std::int64_t>(datasets.training.pixels.size() + datasets.test.pixels.size());
}

std::filesystem::path directory_asked_about(const RunOptions& options) {
    if (options.run) {
        return *options.run;
    }
    if (std::filesystem::is_directory(options.config)) {
        return options.config;
    }
    return run_directory_of(config::load(options.config, options.settings), options);
}

}  // namespace

int plan(const PlanOptions& options) {
    const config::Config config = config::load(options.config, options.settings);
    const cluster::Layout layout = cluster::make_layout(nodes_asked_about(options), layout_options(config));
    fmt::print("{}", plan_text(config, layout, options.gpus_per_node, largest_training(config)));
    fmt::print("the run directory would be {}\n", run_directory_of(config, {}).string());
    return exit_done;
}

int show(const ShowOptions& options) {
    const auto recovered = store::recover(store::RunDirectory(options.run));
    if (!recovered) {
        throw ConfigError(fmt::format("{}: there is no run here (no population.h5)", options.run.string()));
    }
    fmt::print("{}",
               options.csv ? report::csv(*recovered) : report::overview(*recovered, options.run.string(), options.top));
    return exit_done;
}

int status(const RunOptions& options, bool progress) {
    const store::RunDirectory directory(directory_asked_about(options));
    const report::Status now = report::status(directory);
    fmt::print("{}\n", progress ? report::progress_text(now) : report::status_text(now));
    switch (now.state) {
        case report::RunState::complete:
            return status_complete;
        case report::RunState::stopped_early:
            return status_stopped;
        case report::RunState::interrupted:
            return status_interrupted;
        case report::RunState::running:
            return status_running;
    }
    return status_interrupted;
}

int print_config() {
    fmt::print("{}", config::reference_text());
    return exit_done;
}

int generate_data(const std::filesystem::path& folder, std::int64_t samples, std::int64_t size, std::uint64_t seed) {
    data::Options options;
    options.kind = data::Kind::generated;
    options.generated_samples = samples;
    options.generated_size = size;
    data::generate(options, seed, folder.string());
    fmt::print("{} images of {}x{} in {}\n", samples, size, size, folder.string());
    return exit_done;
}

}  // namespace finch::app
