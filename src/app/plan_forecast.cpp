#include "finch/app/plan_forecast.hpp"

#include "finch/app/plan_memory.hpp"
#include "finch/base/clock.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/cluster/device_map.hpp"
#include "finch/cluster/time_limit.hpp"
#include "finch/run/commands.hpp"
#include "finch/run/devices.hpp"
#include "finch/run/startup.hpp"
#include "finch/search/pruning.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

namespace finch::app {

using run::MeanEvaluation;
using run::seconds_per_hour;

namespace {

constexpr std::size_t few_genomes = 8;

/// Sorted numbers with quantiles.
class Distribution {
public:
    explicit Distribution(std::vector<double> values) : values_(std::move(values)) {
        std::sort(values_.begin(), values_.end());
    }
    [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
    [[nodiscard]] double at(double share) const {
        return values_[static_cast<std::size_t>(std::lround(share * static_cast<double>(values_.size() - 1)))];
    }

private:
    std::vector<double> values_;
};

std::vector<MeanEvaluation> trained(const MeasuredWorkers& workers) {
    std::vector<MeanEvaluation> individuals;
    for (const auto& individual : workers.sample) {
        if (individual) {
            individuals.push_back(*individual);
        }
    }
    return individuals;
}

Distribution seconds_of(const MeasuredWorkers& workers) {
    std::vector<double> seconds;
    for (const MeanEvaluation& individual : trained(workers)) {
        seconds.push_back(individual.seconds);
    }
    return Distribution(std::move(seconds));
}

/// Returns the parallel efficiency of `workers` compared with `one`, the workers of one rank, for each genome.
Distribution efficiency(const MeasuredWorkers& one, const MeasuredWorkers& workers) {
    std::vector<double> shares;
    for (std::size_t i = 0; i < std::min(one.sample.size(), workers.sample.size()); ++i) {
        if (one.sample[i] && workers.sample[i]) {
            shares.push_back(one.sample[i]->seconds / (workers.ranks * workers.sample[i]->seconds));
        }
    }
    return Distribution(std::move(shares));
}

std::string efficiency_text(const Measured& measured, const MeasuredWorkers& workers) {
    const MeasuredWorkers& one = measured.workers.front();
    if (one.ranks != 1) {
        return "";
    }
    const Distribution shares = efficiency(one, workers);
    return workers.ranks == 1 || shares.empty()
               ? ""
               : fmt::format("{:.2f} ({:.2f} to {:.2f})", shares.at(0.5), shares.at(0.25), shares.at(0.75));
}

std::string remarks(const config::Config& config, const Measured& measured) {
    std::string text;
    const bool may_stop = !measured.base.empty() && config.recipe(measured.base, 0).training.patience.has_value();
    if (may_stop || search::prunes(config.pruning)) {
        text += fmt::format("remark: {} ends trainings early, which cannot be predicted: this is the time without it\n",
                            may_stop ? "training.early_stopping" : "search.pruning");
    }
    const auto has_configured = [&config](const MeasuredWorkers& workers) {
        return workers.ranks == config.workers.ranks;
    };
    if (std::none_of(measured.workers.begin(), measured.workers.end(), has_configured)) {
        text +=
            fmt::format("remark: workers of {}, as configured, were not measured: start it on so many, or a multiple\n",
                        counted(config.workers.ranks, "rank"));
    }
    if (!measured.base.empty() && config.recipe(measured.base, 0).training.batch_size_per_rank &&
        measured.workers.size() > 1) {
        text += "remark: with training.batch_size_per_rank workers of other sizes learn with other batches\n";
    }
    if (const std::size_t genomes = measured.workers.front().sample.size(); genomes < few_genomes) {
        text += fmt::format("remark: {} say little of a space; --measure-seconds gives it more time\n",
                            counted(static_cast<std::int64_t>(genomes), "genome"));
    }
    if (config.workers.slots > 1) {
        text += "remark: individuals were measured one at a time; the slots of a worker are taken to share it\n";
    }
    return text;
}

/// A time unit that suits the longest of several times.
struct Unit {
    const char* name;
    double seconds;
};
Unit unit_for(double longest) {
    return longest >= 2 * seconds_per_hour ? Unit{"hours", seconds_per_hour}
           : longest >= 120                ? Unit{"minutes", 60}
                                           : Unit{"seconds", 1};
}

std::string range_text(const run::Estimate& estimate, double unit) {
    return fmt::format("{:.3g} ({:.3g} to {:.3g})", estimate.expected / unit, estimate.low / unit,
                       estimate.high / unit);
}

struct Layout {
    const MeasuredWorkers* workers;
    config::Config config;
    cluster::Layout places;
    run::SearchEstimate estimate;
};

MeanEvaluation mean_of(const std::vector<MeanEvaluation>& individuals) {
    MeanEvaluation mean;
    for (const MeanEvaluation& individual : individuals) {
        mean.seconds += individual.seconds / static_cast<double>(individuals.size());
        mean.epochs += individual.epochs / static_cast<double>(individuals.size());
    }
    return mean;
}

int nodes_of(const Question& question) {
    return static_cast<int>(std::set<std::string>(question.node_of_rank.begin(), question.node_of_rank.end()).size());
}

/// Returns the measured layouts of the ranks in `question` that finch evolve would accept. Adds a line to `refused` for
/// each layout that finch evolve would refuse.
std::vector<Layout> layouts_of(const config::Config& config, const Question& question, const Measured& measured,
                               std::string& refused) {
    std::vector<Layout> layouts;
    for (const MeasuredWorkers& workers : measured.workers) {
        const auto individuals = trained(workers);
        if (individuals.empty()) {
            continue;
        }
        try {
            config::Config own =
                config::parse(config.text(), "the plan", {fmt::format("workers.ranks={}", workers.ranks)});
            cluster::Layout places = cluster::make_layout(question.node_of_rank, run::layout_options(own));
            const run::Workforce workforce{.workers = static_cast<int>(places.leaders.size()),
                                           .slots = own.workers.slots,
                                           .nodes = nodes_of(question)};
            if (const auto estimate = run::estimate_search(own.budget, workforce, mean_of(individuals))) {
                layouts.push_back({&workers, std::move(own), std::move(places), *estimate});
            }
        } catch (const ConfigError& error) {
            refused += fmt::format("{:>6}  not possible: {}\n", workers.ranks, error.what());
        }
    }
    return layouts;
}

/// True if `a` ends earlier than `b` by more than a rounding error.
bool is_better_by_time(const Layout& a, const Layout& b) {
    constexpr double alike = 1e-6;
    return a.estimate.seconds.expected < (1 - alike) * b.estimate.seconds.expected;
}

/// True if `a` ends earlier than `b`. If both end at the same time, true if `a` has more evaluations.
bool is_better(const Layout& a, const Layout& b) {
    return is_better_by_time(a, b) ||
           (!is_better_by_time(b, a) && a.estimate.evaluations.expected > b.estimate.evaluations.expected);
}

/// Returns the number of evaluations as text: "200", or "1600 (1200 to 2000)" if a time ends the search.
std::string evaluations_text(const run::Estimate& evaluations) {
    return evaluations.low == evaluations.high ? fmt::format("{:.0f}", evaluations.expected)
                                               : range_text(evaluations, 1);
}

/// Returns the reason for choosing the best of these layouts: "it ends first" or "it evaluates most".
std::string verdict(const std::vector<Layout>& layouts) {
    const auto ends_alike = [&layouts](const Layout& layout) {
        return !is_better_by_time(layout, layouts.front()) && !is_better_by_time(layouts.front(), layout);
    };
    return layouts.size() == 1                                       ? "submit it"
           : std::all_of(layouts.begin(), layouts.end(), ends_alike) ? "it evaluates most"
                                                                     : "it ends first";
}

std::string row_text(const Layout& layout, const Unit& unit, int nodes, std::int64_t starts) {
    const run::SearchEstimate& estimate = layout.estimate;
    return fmt::format("{:>6} {:>8} {:>25} {:>12.3g} {:>28} {:>7}\n", layout.workers->ranks,
                       layout.places.leaders.size(), range_text(estimate.seconds, unit.seconds),
                       estimate.seconds.expected * nodes / seconds_per_hour, evaluations_text(estimate.evaluations),
                       starts > 0 ? std::to_string(starts) : "never");
}

/// Returns the number of job starts that a search of `seconds` needs; 0 if the limit leaves no time to train.
std::int64_t starts_of(double seconds, double limit, double seconds_of_start) {
    const double usable = limit - seconds_of_start - seconds_to_stop;
    return usable <= 0 ? 0 : std::max<std::int64_t>(1, std::llround(std::ceil(seconds / usable)));
}

/// Returns a job time limit that is long enough for the whole search.
double limit_for(const run::SearchEstimate& estimate, double seconds_of_start) {
    return estimate.seconds.high + 2 * seconds_of_start + seconds_to_stop + 60;
}

std::string command(const PlanOptions& options, const Question& question, const data::Datasets& datasets,
                    const Layout& layout, double time_limit) {
    const int nodes = nodes_of(question);
    const auto ranks = static_cast<int>(question.node_of_rank.size());
    std::string line = fmt::format("sbatch --nodes={} ", nodes);
    line += ranks % nodes == 0 ? fmt::format("--ntasks-per-node={}", ranks / nodes) : fmt::format("--ntasks={}", ranks);
    line += fmt::format(" --cpus-per-task={}", layout.workers->threads);
    if (question.gpus_per_node > 0) {
        line += fmt::format(" --gpus-per-node={}", question.gpus_per_node);
    } else {
        const auto cpu = run::make_device(cluster::DeviceKind::cpu, cluster::no_device, 1);
        const Networks networks = try_networks(layout.config, datasets.training, *cpu);
        const NodeMemory memory = node_memory(layout.config, layout.places, networks, datasets);
        line += fmt::format(" --mem-per-cpu={}M", memory.asked_mebibytes_per_cpu(layout.workers->threads));
    }
    line += fmt::format(" --time={} {} {}", cluster::time_limit_text(time_limit), run::commands().job_script,
                        shell_argument(options.config.string()));
    for (const std::string& setting : options.settings) {
        line += setting.starts_with("workers.ranks=") ? "" : " --set " + shell_argument(setting);
    }
    return line + fmt::format(" --set workers.ranks={}", layout.workers->ranks);
}

}  // namespace

std::string measured_text(const config::Config& config, const Measured& measured) {
    std::string text = fmt::format("\nmeasured in {} on {}; an individual, by the ranks of its worker:\n",
                                   duration_text(measured.seconds), measured.device);
    double longest = 0;
    for (const MeasuredWorkers& workers : measured.workers) {
        const Distribution seconds = seconds_of(workers);
        longest = seconds.empty() ? longest : std::max(longest, seconds.at(1));
    }
    const Unit unit = unit_for(longest);
    text += fmt::format("{:>6} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}  efficiency   ({})\n", "ranks", "threads",
                        "genomes", "fastest", "quartile", "median", "quartile", "slowest", unit.name);
    for (const MeasuredWorkers& workers : measured.workers) {
        const Distribution seconds = seconds_of(workers);
        if (seconds.empty()) {
            text += fmt::format("{:>6} {:>8}        none of {} genomes could be trained\n", workers.ranks,
                                workers.threads, workers.sample.size());
            continue;
        }
        text += fmt::format("{:>6} {:>8} {:>8}", workers.ranks, workers.threads, seconds.size());
        for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
            text += fmt::format(" {:>9.3g}", seconds.at(share) / unit.seconds);
        }
        text += fmt::format("  {}\n", efficiency_text(measured, workers));
    }
    if (!measured.genes.empty()) {
        text += fmt::format("by gene, on {}, the others as in {}:\n", counted(measured.ranks_of_genes, "rank"),
                            search::genome_text(config.space, measured.base));
    }
    std::vector<std::string> without_time;
    for (const MeasuredGene& gene : measured.genes) {
        if (gene.seconds.empty()) {
            without_time.push_back(gene.name);
            continue;
        }
        text += fmt::format("  {:<20}", gene.name);
        for (const auto& [value, seconds] : gene.seconds) {
            text += seconds ? fmt::format("  {}: {:.3g}", value, *seconds / unit.seconds)
                            : fmt::format("  {}: no network", value);
        }
        text += "\n";
    }
    if (!without_time.empty()) {
        text += fmt::format("  for want of time not: {} (--measure-seconds)\n", fmt::join(without_time, ", "));
    }
    return text + remarks(config, measured);
}

std::string layouts_text(const config::Config& config, const PlanOptions& options, const Question& question,
                         const data::Datasets& datasets, const Measured& measured, std::optional<double> time_limit) {
    if (!run::estimate_search(config.budget, {}, {.seconds = 1, .epochs = 1})) {
        return "search.budget.target_loss alone ends this search: how long that takes cannot be "
               "foreseen\n";
    }
    const bool plans_gpus = question.gpus_per_node > 0 && cluster::may_use_cuda(config.workers.device);
    if (measured.on_gpus != plans_gpus) {
        return fmt::format("no forecast: these times are of {}, and the plan is for nodes {} GPUs; {}\n",
                           measured.on_gpus ? "GPUs" : "CPUs", measured.on_gpus ? "without" : "with",
                           measured.on_gpus ? "say --gpus-per-node N" : "start it where the GPUs are");
    }
    std::string refused;
    const std::vector<Layout> layouts = layouts_of(config, question, measured, refused);
    if (layouts.empty()) {
        return refused + "no layout was measured that these ranks could have\n";
    }
    double longest = 0;
    for (const Layout& layout : layouts) {
        longest = std::max(longest, layout.estimate.seconds.high);
    }
    const Unit unit = unit_for(longest);
    const int nodes = nodes_of(question);
    const Layout& best = *std::min_element(layouts.begin(), layouts.end(), is_better);
    const double limit = time_limit.value_or(limit_for(best.estimate, measured.seconds_of_start));
    std::string text = fmt::format("\nthe search on {} of {}, in starts of {}; a quarter less and more in brackets:\n",
                                   counted(std::ssize(question.node_of_rank), "rank"), counted(nodes, "node"),
                                   cluster::time_limit_text(limit));
    text += fmt::format("{:>6} {:>8} {:>25} {:>12} {:>28} {:>7}\n", "ranks", "workers", unit.name, "node-hours",
                        "evaluations", "starts");
    std::int64_t starts_of_best = 0;
    for (const Layout& layout : layouts) {
        const std::int64_t starts = starts_of(layout.estimate.seconds.expected, limit, measured.seconds_of_start);
        starts_of_best = &layout == &best ? starts : starts_of_best;
        text += row_text(layout, unit, nodes, starts);
    }
    text += refused;
    if (starts_of_best == 0) {
        return text + fmt::format(
                          "a limit of {} leaves no time to train: {:.0f} s pass before a search begins, and {:.0f} s "
                          "before the limit it stops\n",
                          cluster::time_limit_text(limit), measured.seconds_of_start, seconds_to_stop);
    }
    return text + fmt::format("{} with workers of {}:\n  {}\n", verdict(layouts), counted(best.workers->ranks, "rank"),
                              command(options, question, datasets, best, limit));
}

}  // namespace finch::app
