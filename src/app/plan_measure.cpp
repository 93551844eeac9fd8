// Implements finch plan --measure.
#include "finch/app/plan.hpp"
#include "finch/app/plan_forecast.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/message.hpp"
#include "finch/base/run_state.hpp"
#include "finch/base/words.hpp"
#include "finch/cluster/allocation.hpp"
#include "finch/cluster/time_limit.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/comm/node_memory.hpp"
#include "finch/nn/model.hpp"
#include "finch/run/checks.hpp"
#include "finch/run/devices.hpp"
#include "finch/run/load_data.hpp"
#include "finch/run/on_every_rank.hpp"
#include "finch/run/startup.hpp"
#include "finch/search/initial_design.hpp"
#include "finch/train/timing.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <numeric>

namespace finch::app {
namespace {

constexpr std::uint32_t random_genomes = 24;
constexpr std::size_t fewest_genomes = 4;  ///< they may take three times the planned time
constexpr double share_of_bounds = 0.3;    ///< share of the time to measure the genes' bounds
constexpr std::size_t most_options = 8;    ///< maximum number of measured options of a choice

/// The worker of this rank in a layout with `ranks` ranks per worker. Trains each genome for `seconds`.
class Workers {
public:
    /// Collective over the world.
    Workers(const comm::Session& session, const config::Config& config, int ranks, int threads, double seconds)
        : seconds_(seconds),
          config_(config::parse(
              config.text(), "the plan",
              {fmt::format("workers.ranks={}", ranks), fmt::format("workers.threads={}", threads), "workers.islands=1",
               "workers.slots=1", "search.islands=none", "search.exchange={kind: none}"})),
          placement_(run::place_ranks(session, config_, cluster::Slurm::read(cluster::Environment::of_this_process()))),
          group_(MPI_COMM_WORLD, placement_.mine(session.world_rank()).worker,
                 placement_.mine(session.world_rank()).group_rank, config_.workers.timeout_seconds),
          device_(run::open_device(session, config_, placement_)) {
        const std::string& node = placement_.mine(session.world_rank()).node;
        run::on_every_rank(MPI_COMM_WORLD, [&] { run::check_precision(config_, *device_.device, node); });
        all_reduce_ =
            comm::make_all_reduce(device_.communicator, group_, *device_.device, config_.workers.timeout_seconds);
    }

    /// Collective over the world. All workers train the same genome at the same time, as in a search. Returns the mean
    /// of their training times; nothing if the genome cannot be trained.
    std::optional<double> seconds_of(const search::Genome& genome, const data::Dataset& images) {
        const train::Recipe recipe = config_.recipe(genome, 0);
        const auto timing = train::measure_timing(*device_.device, group_, *all_reduce_, images, recipe, seconds_);
        const double mine = timing
                                ? train::training_seconds(*timing, train::epoch_batches(recipe, images, group_.size()),
                                                          recipe.training.epochs)
                                : std::numeric_limits<double>::infinity();
        std::vector<double> all;
        for (const std::string& packed : comm::gather_all(MPI_COMM_WORLD, to_message(mine))) {
            all.push_back(from_message<double>(packed));
        }
        const double mean = std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
        return std::isfinite(mean) ? std::optional(mean) : std::nullopt;
    }
    [[nodiscard]] std::int64_t epochs_of(const search::Genome& genome) const {
        return config_.recipe(genome, 0).training.epochs;
    }
    [[nodiscard]] int threads() const noexcept { return placement_.threads; }
    [[nodiscard]] const std::string& device() const noexcept { return device_.description; }
    [[nodiscard]] bool on_gpus() const { return !device_.device->is_host(); }

private:
    double seconds_;
    config::Config config_;
    run::Placement placement_;
    comm::Group group_;
    run::OpenedDevice device_;
    std::unique_ptr<comm::AllReduce> all_reduce_;
};

bool can_exist(const config::Config& config, const search::Genome& genome, const data::Dataset& images) {
    const nn::SampleShape shape{images.height, images.width, images.channels};
    return config::can_exist(config, genome, shape, images.outputs()) &&
           search::all_hold(config.constraints, config.space, genome);
}

/// Returns a Latin hypercube sample, so that few genomes represent the whole space. Random genomes replace genomes for
/// which no network can exist.
std::vector<search::Genome> sample_of(const config::Config& config, const data::Dataset& images) {
    constexpr std::uint32_t most_attempts = 1000;
    const search::InitialDesign initial_design{
        .space = config.space, .start = search::Start::latin, .points = random_genomes, .seed = config.seed};
    RandomStream random(config.seed, Purpose::start, 1);
    std::vector<search::Genome> genomes;
    for (std::uint32_t point = 0; point < random_genomes; ++point) {
        for (std::uint32_t attempt = 0; attempt < most_attempts; ++attempt) {
            search::Genome genome = initial_design.open(point, attempt, random).genome;
            if (can_exist(config, genome, images)) {
                genomes.push_back(std::move(genome));
                break;
            }
        }
    }
    return genomes;
}

/// A time limit. allows() is collective over the world: true if rank 0 has time for another measurement.
class Deadline {
public:
    explicit Deadline(double seconds) : end_(steady_seconds() + seconds), last_end_(end_ + 2 * seconds) {}
    [[nodiscard]] bool allows(std::size_t measured) const {
        const double now = steady_seconds();
        const bool mine = measured == 0 || now < (measured < fewest_genomes ? last_end_ : end_);
        return from_message<bool>(comm::broadcast(MPI_COMM_WORLD, to_message(mine)));
    }

private:
    double end_;
    double last_end_;  ///< applies to the first `fewest_genomes`
};

/// Prints the progress of the measurement: immediately on a terminal, elsewhere every 10 s.
class MeasureProgress {
public:
    explicit MeasureProgress(const comm::Session& session) : is_zero_(session.world_rank() == 0) {}
    void show(std::size_t trainings) {
        constexpr double seconds_between = 10;
        const std::string text =
            fmt::format("measuring: {} so far", counted(static_cast<std::int64_t>(trainings), "training"));
        if (is_zero_ && LiveLine::available()) {
            LiveLine::show(text);
        } else if (is_zero_ && steady_seconds() - last_ > seconds_between) {
            fmt::print("{}\n", text);
            std::fflush(stdout);
            last_ = steady_seconds();
        }
    }

private:
    bool is_zero_;
    double last_ = steady_seconds();
};

/// Returns the shorter of two times; nothing if `now` is nothing.
std::optional<double> shorter(const std::optional<run::MeanEvaluation>& before, std::optional<double> now) {
    return before && now ? std::optional(std::min(before->seconds, *now)) : now;
}

/// Collective over the world. Measures the genome number `which` on workers of all sizes.
void measure_one(std::vector<std::unique_ptr<Workers>>& all, const std::vector<search::Genome>& genomes,
                 std::size_t which, const data::Dataset& images, std::vector<MeasuredWorkers>& measured) {
    for (std::size_t i = 0; i < all.size(); ++i) {
        auto& individual = measured[i].sample[which];
        if (const auto time = shorter(individual, all[i]->seconds_of(genomes[which], images))) {
            individual = {*time, static_cast<double>(all[i]->epochs_of(genomes[which]))};
        }
    }
}

/// Collective over the world. Measures every genome on workers of all sizes, then a second time as far as time allows.
/// The shorter of two times counts, so brief disturbances of the machine have no effect.
void measure_sample(MeasureProgress& progress, std::vector<std::unique_ptr<Workers>>& all,
                    const std::vector<search::Genome>& genomes, const data::Dataset& images, double seconds,
                    std::vector<MeasuredWorkers>& measured) {
    const Deadline first_round(seconds / 2);
    const Deadline second_round(seconds);
    std::size_t count = 0;
    for (; count < genomes.size() && first_round.allows(count); ++count) {
        for (MeasuredWorkers& workers : measured) {
            workers.sample.emplace_back();
        }
        progress.show(count);
        measure_one(all, genomes, count, images, measured);
    }
    for (std::size_t genome = 0; genome < count && second_round.allows(fewest_genomes); ++genome) {
        progress.show(count + genome);
        measure_one(all, genomes, genome, images, measured);
    }
}

/// Returns the values of a gene to measure: the bounds of a number, or the options of a choice.
std::vector<double> values_to_try(const search::Gene& gene) {
    if (std::holds_alternative<search::ChoiceGene>(gene.kind)) {
        std::vector<double> options(std::min<std::size_t>(search::value_count(gene).value_or(0), most_options));
        std::iota(options.begin(), options.end(), 0);
        return options;
    }
    return {search::first_value(gene), search::snap(gene, std::numeric_limits<double>::infinity())};
}

/// Collective over the world. Measures each gene at its bounds while the other genes stay as in `base`. A gene has no
/// values if the time was too short to measure it.
std::vector<MeasuredGene> measure_bounds(MeasureProgress& progress, Workers& workers, const config::Config& config,
                                         const search::Genome& base, const data::Dataset& images, double seconds) {
    const Deadline deadline(seconds);
    std::vector<MeasuredGene> genes;
    for (std::size_t at = 0; at < config.space.size(); ++at) {
        const search::Gene& gene = config.space.genes[at];
        if (search::is_fixed(gene)) {
            continue;
        }
        MeasuredGene& measured = genes.emplace_back(MeasuredGene{gene.name, {}});
        const bool has_time = deadline.allows(genes.size() - 1);
        for (const double value : has_time ? values_to_try(gene) : std::vector<double>()) {
            search::Genome genome = base;
            genome[at] = value;
            genome = search::canonical(config.space, std::move(genome));
            if (genome[at] != value) {
                continue;  // the gene is not active there
            }
            if (!can_exist(config, genome, images)) {
                measured.seconds.emplace_back(search::value_text(gene, value), std::nullopt);
                continue;
            }
            progress.show(2 * random_genomes + genes.size());
            if (const auto time = workers.seconds_of(genome, images)) {
                measured.seconds.emplace_back(search::value_text(gene, value), *time);
            }
        }
    }
    return genes;
}

/// Returns the index of the individual with the median time.
std::size_t middle_of(const MeasuredWorkers& workers) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < workers.sample.size(); ++i) {
        if (workers.sample[i]) {
            order.push_back(i);
        }
    }
    std::sort(order.begin(), order.end(), [&workers](std::size_t a, std::size_t b) {
        return workers.sample[a]->seconds < workers.sample[b]->seconds;
    });
    return order.empty() ? 0 : order[order.size() / 2];
}

/// Returns the sizes of workers to measure: 1, 2, 4 … ranks and the configured number, if they divide `world_size`.
std::vector<int> sizes_to_measure(int world_size, int configured) {
    std::vector<int> sizes;
    for (int ranks = 1; ranks <= world_size; ranks *= 2) {
        sizes.push_back(ranks);
    }
    sizes.push_back(configured);
    std::erase_if(sizes, [world_size](int ranks) { return ranks > world_size || world_size % ranks != 0; });
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
}

/// Returns the ranks for which the plan is made: the user's options, otherwise the allocation, otherwise the ranks of
/// this measurement.
Question question_of_plan(const PlanOptions& options, const config::Config& config,
                          std::vector<std::string> ranks_here) {
    const bool is_asked = options.nodes || options.ranks_per_node;
    const auto environment = cluster::Environment::of_this_process();
    if (is_asked || !cluster::ranks_of_allocation(environment).empty()) {
        return question_of(options, config);
    }
    return {std::move(ranks_here), options.gpus_per_node};
}

std::optional<double> time_limit_of(const PlanOptions& options) {
    if (!options.time_limit) {
        return std::nullopt;
    }
    const auto seconds = cluster::parse_time_limit(*options.time_limit);
    if (!seconds) {
        throw ConfigError(fmt::format(
            "--time: {} is no time limit; accepted, as by sbatch: minutes, hours:minutes:seconds, days-hours",
            *options.time_limit));
    }
    if (*seconds <= seconds_to_stop) {
        throw ConfigError(fmt::format("--time: {} is {}, and a job stops {} before its limit; accepted: more",
                                      *options.time_limit, duration_text(*seconds), duration_text(seconds_to_stop)));
    }
    return seconds;
}

}  // namespace

int measure_plan(const comm::Session& session, const PlanOptions& options) {
    const std::string text = run::on_rank_zero(MPI_COMM_WORLD, [&] { return load_to_plan(options).text(); });
    const config::Config config = config::parse(text, options.config.string());
    if (!config.trains()) {
        throw ConfigError("--measure: it trains networks, and search.objective is a function or a program");
    }
    const std::optional<double> time_limit = time_limit_of(options);
    LogOptions quiet;
    quiet.level = LogLevel::warning;
    set_up_log(quiet, session.world_rank(), false);
    const std::vector<std::string> node_of_rank = comm::names_of_nodes(MPI_COMM_WORLD);
    const Question question = question_of_plan(options, config, node_of_rank);
    const double before = steady_seconds();
    const run::LoadedData loaded = run::load_on_each_node(run::data_options(config), config.seed);
    const double seconds_of_start = steady_seconds() - before;
    static_cast<void>(run::on_rank_zero(MPI_COMM_WORLD, [&] {
        print_plan(config, question, &loaded.sets);
        return std::string();
    }));
    const data::Dataset& images = loaded.sets.training;
    const std::vector<search::Genome> genomes = sample_of(config, images);
    Measured measured;
    measured.seconds_of_start = seconds_of_start;
    // Uses the same number of threads as the plan's memory estimate.
    const auto slurm = cluster::Slurm::read(cluster::Environment::of_this_process());
    const int threads =
        config.workers.threads > 0 ? config.workers.threads : static_cast<int>(slurm.cpus_per_task.value_or(1));
    std::vector<std::unique_ptr<Workers>> all;
    for (const int ranks : sizes_to_measure(session.world_size(), config.workers.ranks)) {
        all.push_back(
            std::make_unique<Workers>(session, config, ranks, threads, std::min(0.3, options.measure_seconds / 400)));
        measured.workers.push_back({.ranks = ranks, .threads = all.back()->threads(), .sample = {}});
    }
    measured.device = all.front()->device();
    measured.on_gpus = all.front()->on_gpus();
    const double begin = steady_seconds();
    MeasureProgress progress(session);
    measure_sample(progress, all, genomes, images, options.measure_seconds * (1 - share_of_bounds), measured.workers);
    const auto configured = std::find_if(measured.workers.begin(), measured.workers.end(),
                                         [&](const auto& workers) { return workers.ranks == config.workers.ranks; });
    const auto chosen = configured == measured.workers.end() ? measured.workers.begin() : configured;
    measured.ranks_of_genes = chosen->ranks;
    if (!genomes.empty()) {
        measured.base = genomes[middle_of(*chosen)];
        measured.genes = measure_bounds(progress, *all[static_cast<std::size_t>(chosen - measured.workers.begin())],
                                        config, measured.base, images, options.measure_seconds * share_of_bounds);
    }
    measured.seconds = steady_seconds() - begin;
    LiveLine::clear();
    static_cast<void>(run::on_rank_zero(MPI_COMM_WORLD, [&] {
        fmt::print("{}{}", measured_text(config, measured),
                   layouts_text(config, options, question, loaded.sets, measured, time_limit));
        return std::string();
    }));
    return exit_done;
}

}  // namespace finch::app
