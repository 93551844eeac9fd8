// Implements finch plan --measure.
#include "finch/app/plan.hpp"
#include "finch/app/plan_memory.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/message.hpp"
#include "finch/base/words.hpp"
#include "finch/cluster/device_map.hpp"
#include "finch/cluster/time_limit.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/comm/node_memory.hpp"
#include "finch/run/checks.hpp"
#include "finch/run/commands.hpp"
#include "finch/run/devices.hpp"
#include "finch/run/estimate.hpp"
#include "finch/run/load_data.hpp"
#include "finch/run/on_every_rank.hpp"
#include "finch/run/progress_text.hpp"
#include "finch/run/startup.hpp"
#include "finch/search/initial_design.hpp"
#include "finch/search/pruning.hpp"
#include "finch/train/timing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace finch::app {
namespace {

constexpr std::uint32_t most_genomes = 24;
constexpr std::size_t fewest_genomes = 4;  ///< they may take three times the planned time

/// The time between the stop of a job and its time limit, in seconds. Equal to --signal in jobs/evolve.sbatch.
constexpr double seconds_to_stop = 180;

/// The worker of this rank in a layout with `ranks` ranks per worker.
class Workers {
public:
    /// Collective over the world. Each genome is trained for `seconds`.
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
        const auto mine =
            train::measure_training(*device_.device, group_, *all_reduce_, images, config_.recipe(genome, 0), seconds_);
        double sum = 0;
        const auto all =
            comm::gather_all(MPI_COMM_WORLD, to_message(mine.value_or(std::numeric_limits<double>::infinity())));
        for (const std::string& packed : all) {
            sum += from_message<double>(packed);
        }
        return std::isfinite(sum) ? std::optional(sum / static_cast<double>(all.size())) : std::nullopt;
    }
    [[nodiscard]] int threads() const noexcept { return placement_.threads; }
    [[nodiscard]] const std::string& device() const noexcept { return device_.description; }
    [[nodiscard]] bool is_on_gpus() const { return !device_.device->is_host(); }

private:
    double seconds_;
    config::Config config_;
    run::Placement placement_;
    comm::Group group_;
    run::OpenedDevice device_;
    std::unique_ptr<comm::AllReduce> all_reduce_;
};

/// The workers of one size: their training times, and the search on the planned ranks in such workers.
struct Size {
    int ranks = 1;
    int threads = 1;                          ///< per rank
    std::map<std::size_t, double> seconds{};  ///< by the number of the genome, without those that could not be trained
    run::MeanEvaluation mean{};
    std::optional<config::Config> config{};
    cluster::Layout layout{};
    std::optional<run::SearchEstimate> estimate{};
    std::string problem{};  ///< why there is no estimate
};

/// Returns a Latin hypercube sample, so that few genomes represent the whole space. Random genomes replace genomes for
/// which no network can exist.
std::vector<search::Genome> sample_of(const config::Config& config, const data::Dataset& images) {
    constexpr std::uint32_t most_attempts = 1000;
    const search::InitialDesign design{.space = config.space,
                                       .start = search::Start::latin,
                                       .points = most_genomes,
                                       .constraints = config.constraints,
                                       .seed = config.seed};
    RandomStream random(config.seed, Purpose::start, 1);
    std::vector<search::Genome> genomes;
    for (std::uint32_t point = 0; point < most_genomes; ++point) {
        for (std::uint32_t attempt = 0; attempt < most_attempts; ++attempt) {
            search::Genome genome = design.open(point, attempt, random).genome;
            if (design.allows(genome) &&
                config::can_exist(config, genome, {images.height, images.width, images.channels}, images.outputs())) {
                genomes.push_back(std::move(genome));
                break;
            }
        }
    }
    return genomes;
}

/// Collective over the world. Measures `genomes` on workers of all sizes, and removes those for which there was no
/// time.
void measure_sample(std::vector<std::unique_ptr<Workers>>& all, std::vector<search::Genome>& genomes,
                    const data::Dataset& images, double limit, std::vector<Size>& sizes) {
    const double begin = steady_seconds();
    for (std::size_t count = 0; count < genomes.size(); ++count) {
        const double passed = steady_seconds() - begin;
        const bool has_time = count == 0 || passed < (count < fewest_genomes ? 3 * limit : limit);
        if (!from_message<bool>(comm::broadcast(MPI_COMM_WORLD, to_message(has_time)))) {
            genomes.resize(count);
            break;
        }
        if (comm::rank_of(MPI_COMM_WORLD) == 0 && LiveLine::available()) {
            LiveLine::show(fmt::format("measuring: genome {} of {}", count + 1, genomes.size()));
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (const auto time = all[i]->seconds_of(genomes[count], images)) {
                sizes[i].seconds.emplace(count, *time);
            }
        }
    }
    LiveLine::clear();
}

/// Returns the sizes of workers to measure: 1, 2, 4 … ranks and the configured number, if they divide `world_size`.
std::set<int> sizes_to_measure(int world_size, int configured) {
    std::set<int> sizes{configured};
    for (int ranks = 1; ranks <= world_size; ranks *= 2) {
        sizes.insert(ranks);
    }
    std::erase_if(sizes, [world_size](int ranks) { return world_size % ranks != 0; });
    return sizes;
}

/// Returns the time limit of each start in seconds; 0 if the user gives none.
double time_limit_of(const PlanOptions& options) {
    if (!options.time_limit) {
        return 0;
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
    return *seconds;
}

int nodes_of(const Question& question) {
    return static_cast<int>(std::set<std::string>(question.node_of_rank.begin(), question.node_of_rank.end()).size());
}

/// Sets the means and the estimate of `size`, or the reason why finch evolve would refuse this layout.
void estimate(Size& size, const config::Config& config, const std::vector<search::Genome>& genomes,
              const Question& question, bool is_on_gpus) {
    if (size.seconds.empty()) {
        size.problem = "none of the genomes could be trained";
        return;
    }
    const auto count = static_cast<double>(size.seconds.size());
    for (const auto& [genome, seconds] : size.seconds) {
        size.mean.seconds += seconds / count;
        size.mean.epochs += static_cast<double>(config.recipe(genomes[genome], 0).training.epochs) / count;
    }
    if (is_on_gpus != (question.gpus_per_node > 0 && cluster::may_use_cuda(config.workers.device))) {
        size.problem = fmt::format("no estimate: the times are of {}, and the plan is for nodes {} GPUs",
                                   is_on_gpus ? "GPUs" : "CPUs", is_on_gpus ? "without" : "with");
        return;
    }
    try {
        size.config = config::parse(config.text(), "the plan", {fmt::format("workers.ranks={}", size.ranks)});
        size.layout = cluster::make_layout(question.node_of_rank, run::layout_options(*size.config));
        const run::Workforce workforce{.workers = static_cast<int>(size.layout.leaders.size()),
                                       .slots = config.workers.slots,
                                       .nodes = nodes_of(question)};
        size.estimate = run::estimate_search(config.budget, workforce, size.mean);
        size.problem = size.estimate ? "" : "search.budget.target_loss alone ends it, which cannot be foreseen";
    } catch (const ConfigError& error) {
        size.problem = fmt::format("not possible: {}", error.what());
    }
}

/// True if the search on workers of size `a` ends earlier than on size `b`, or at the same time with more evaluations.
bool is_better(const Size& a, const Size& b) {
    return a.estimate &&
           (!b.estimate || std::pair(a.estimate->seconds.expected, -a.estimate->evaluations.expected) <
                               std::pair(b.estimate->seconds.expected, -b.estimate->evaluations.expected));
}

/// Returns the number of job starts that a search of `seconds` needs, each within `limit` and after `reading` the data;
/// 0 if the limit leaves no time to train.
std::int64_t starts_of(double seconds, double limit, double reading) {
    const double usable = limit - reading - seconds_to_stop;
    return usable <= 0 ? 0 : std::max<std::int64_t>(1, std::llround(std::ceil(seconds / usable)));
}

std::string row_of(const Size& size, const Size& first, int nodes, double limit, double reading) {
    std::string text = fmt::format("{:>6} {:>8} {:>8}", size.ranks, size.threads, size.seconds.size());
    if (!size.seconds.empty()) {
        const auto [fastest, slowest] = std::minmax_element(
            size.seconds.begin(), size.seconds.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
        const bool is_known = first.ranks == 1 && !first.seconds.empty() && size.ranks > 1;
        const double efficiency = first.mean.seconds / (size.ranks * size.mean.seconds);
        text += fmt::format(" {:>12} {:>12} {:>12} {:>10}", duration_text(fastest->second),
                            duration_text(size.mean.seconds), duration_text(slowest->second),
                            is_known ? fmt::format("{:.2f}", efficiency) : "");
    }
    if (!size.estimate) {
        return text + "  " + size.problem + "\n";
    }
    const auto& [seconds, evaluations] = *size.estimate;
    const std::int64_t starts = starts_of(seconds.expected, limit, reading);
    return text + fmt::format(" {:>8} {:>16} {:>10.3g} {:>17} {:>6}\n", size.layout.leaders.size(),
                              run::range_text(seconds, {}), seconds.expected * nodes / run::seconds_per_hour,
                              evaluations.low == evaluations.high
                                  ? fmt::format("{:.0f}", evaluations.expected)
                                  : fmt::format("{:.0f}-{:.0f}", evaluations.low, evaluations.high),
                              starts > 0 ? std::to_string(starts) : "never");
}

std::string remarks(const config::Config& config, const std::vector<search::Genome>& genomes,
                    const std::vector<Size>& sizes) {
    std::string text;
    if (search::prunes(config.pruning) ||
        (!genomes.empty() && config.recipe(genomes.front(), 0).training.patience.has_value())) {
        text += "remark: training.early_stopping or search.pruning ends trainings early: this is the time without it\n";
    }
    if (std::none_of(sizes.begin(), sizes.end(),
                     [&](const Size& size) { return size.ranks == config.workers.ranks; })) {
        text += fmt::format("remark: workers of {}, as configured, were not measured: start it on a multiple\n",
                            counted(config.workers.ranks, "rank"));
    }
    return text;
}

std::string command(const PlanOptions& options, const Question& question, const data::Datasets& datasets,
                    const Size& size, double time_limit) {
    const int nodes = nodes_of(question);
    const auto ranks = static_cast<int>(question.node_of_rank.size());
    std::string line = fmt::format("sbatch --nodes={} ", nodes);
    line += ranks % nodes == 0 ? fmt::format("--ntasks-per-node={}", ranks / nodes) : fmt::format("--ntasks={}", ranks);
    line += fmt::format(" --cpus-per-task={}", size.threads);
    if (question.gpus_per_node > 0) {
        line += fmt::format(" --gpus-per-node={}", question.gpus_per_node);
    } else {
        const auto cpu = run::make_device(cluster::DeviceKind::cpu, cluster::no_device, 1);
        const Networks networks = try_networks(*size.config, datasets.training, *cpu);
        const NodeMemory memory = node_memory(*size.config, size.layout, networks, datasets);
        line += fmt::format(" --mem-per-cpu={}M", memory.asked_mebibytes_per_cpu(size.threads));
    }
    line += fmt::format(" --time={} {} {}", cluster::time_limit_text(time_limit), run::commands().job_script,
                        shell_argument(options.config.string()));
    for (const std::string& setting : options.settings) {
        line += setting.starts_with("workers.ranks=") ? "" : " --set " + shell_argument(setting);
    }
    return line + fmt::format(" --set workers.ranks={}", size.ranks);
}

/// Returns a row for each size, and the command for the best one.
std::string table_text(const PlanOptions& options, const Question& question, const data::Datasets& datasets,
                       const std::vector<Size>& sizes, double limit, double reading) {
    const Size& best = *std::min_element(sizes.begin(), sizes.end(), is_better);
    if (limit == 0 && best.estimate) {
        limit = best.estimate->seconds.high + 2 * reading + seconds_to_stop + 60;
    }
    std::string text = fmt::format("{:>6} {:>8} {:>8} {:>12} {:>12} {:>12} {:>10} {:>8} {:>16} {:>10} {:>17} {:>6}\n",
                                   "ranks", "threads", "genomes", "fastest", "mean", "slowest", "efficiency", "workers",
                                   "search", "node-hours", "evaluations", "starts");
    for (const Size& size : sizes) {
        text += row_of(size, sizes.front(), nodes_of(question), limit, reading);
    }
    if (!best.estimate || starts_of(best.estimate->seconds.expected, limit, reading) == 0) {
        return text;
    }
    return text + fmt::format("best with workers of {}:\n  {}\n", counted(best.ranks, "rank"),
                              command(options, question, datasets, best, limit));
}

}  // namespace

int measure_plan(const comm::Session& session, const PlanOptions& options) {
    const std::string text = run::on_rank_zero(MPI_COMM_WORLD, [&] { return load_to_plan(options).text(); });
    const config::Config config = config::parse(text, options.config.string());
    if (!config.trains()) {
        throw ConfigError("--measure: it trains networks, and search.objective is a function or a program");
    }
    const double limit = time_limit_of(options);
    LogOptions quiet;
    quiet.level = LogLevel::warning;
    set_up_log(quiet, session.world_rank(), false);
    const Question question = question_of(options, config, comm::names_of_nodes(MPI_COMM_WORLD));
    const double before = steady_seconds();
    const run::LoadedData loaded = run::load_on_each_node(run::data_options(config), config.seed);
    const double reading = steady_seconds() - before;
    static_cast<void>(run::on_rank_zero(MPI_COMM_WORLD, [&] {
        print_plan(config, question, &loaded.sets);
        return std::string();
    }));
    const auto slurm = cluster::Slurm::read(cluster::Environment::of_this_process());
    const int threads =
        config.workers.threads > 0 ? config.workers.threads : static_cast<int>(slurm.cpus_per_task.value_or(1));
    std::vector<std::unique_ptr<Workers>> all;
    std::vector<Size> sizes;
    for (const int ranks : sizes_to_measure(session.world_size(), config.workers.ranks)) {
        all.push_back(
            std::make_unique<Workers>(session, config, ranks, threads, std::min(0.3, options.measure_seconds / 400)));
        sizes.push_back({.ranks = ranks, .threads = all.back()->threads()});
    }
    std::vector<search::Genome> genomes = sample_of(config, loaded.sets.training);
    const double begin = steady_seconds();
    measure_sample(all, genomes, loaded.sets.training, options.measure_seconds, sizes);
    const double seconds = steady_seconds() - begin;
    for (Size& size : sizes) {
        estimate(size, config, genomes, question, all.front()->is_on_gpus());
    }
    const std::string table = run::on_rank_zero(
        MPI_COMM_WORLD, [&] { return table_text(options, question, loaded.sets, sizes, limit, reading); });
    if (session.world_rank() == 0) {
        fmt::print("\nmeasured in {} on {}; an individual on workers of several sizes, and the search on {} of {}:\n",
                   duration_text(seconds), all.front()->device(), counted(std::ssize(question.node_of_rank), "rank"),
                   counted(nodes_of(question), "node"));
        fmt::print("{}{}", remarks(config, genomes, sizes), table);
    }
    return exit_done;
}

}  // namespace finch::app
