#include "next_steps.hpp"

#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"
#include "finch/base/words.hpp"
#include "finch/search/outcomes.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

namespace finch::report {
namespace {

constexpr std::int64_t fewest_proposed = 50;  ///< evaluations

/// How this run was started, for another start: in a job, with mpirun, or alone.
std::string launcher(const store::ArchiveFacts& facts, const Commands& commands) {
    if (!facts.starts.empty() && !facts.starts.back().job.empty()) {
        return "sbatch " + commands.job_script;
    }
    std::int64_t ranks = 0;
    for (const auto& [key, report] : facts.reports) {
        ranks += key.first == facts.restarts ? report.ranks : 0;
    }
    const bool has_too_many = commands.most_ranks > 0 && ranks > commands.most_ranks;
    const std::string options =
        fmt::format("{}{}", has_too_many ? " --oversubscribe" : "", commands.is_root ? " --allow-run-as-root" : "");
    return fmt::format("{}{} evolve", ranks > 1 ? fmt::format("mpirun -n {}{} ", ranks, options) : "",
                       commands.program);
}

/// "runs/mnist-2" after "runs/mnist", "runs/mnist-3" after that.
std::string following_name(const std::string& run) {
    const std::size_t behind = run.rfind('-') + 1;  // npos + 1 is 0
    const int number = behind > 0 ? parsed<int>(run.substr(behind)).value_or(0) : 0;
    return number > 1 ? fmt::format("{}{}", run.substr(0, behind), number + 1) : run + "-2";
}

std::string command(const SummaryInput& input, const std::string& run, const std::vector<std::string>& settings) {
    std::string text = fmt::format("{} {} --run {}", launcher(input.facts, input.commands),
                                   shell_argument(input.run + "/config.yaml"), shell_argument(run));
    for (const std::string& setting : settings) {
        text += " --set " + shell_argument(setting);
    }
    return text;
}

/// "search.space.lr.real=[0.0001, 0.1]": the range with half of its width more at `bound`; empty if there is none. A
/// bound of 0 stays: it is usually a natural one.
std::string wider_range(const search::Gene& gene, GeneEffect::Bound bound) {
    const auto text = [&](const char* kind, auto low, auto high) {
        return fmt::format("search.space.{}.{}=[{:.6g}, {:.6g}]", gene.name, kind, double(low), double(high));
    };
    const bool is_low = bound == GeneEffect::Bound::low;
    if (const auto* const real = std::get_if<search::RealGene>(&gene.kind)) {
        const bool is_log = real->scale == search::Scale::log;
        const double factor = is_log ? std::sqrt(real->high / real->low) : 1;
        double width = (real->high - real->low) / 2;
        width = real->step > 0 ? std::max(1.0, std::round(width / real->step)) * real->step : width;
        const double low = is_log          ? real->low / factor
                           : real->low > 0 ? std::max(real->low / 2, real->low - width)
                                           : real->low - width;
        if (is_low && (real->low == 0 || (real->step > 0 && real->low > 0))) {
            return "";
        }
        return is_low ? text("real", low, real->high)
                      : text("real", real->low, is_log ? real->high * factor : real->high + width);
    }
    if (const auto* const whole = std::get_if<search::IntGene>(&gene.kind)) {
        const std::int64_t steps = std::max<std::int64_t>(1, (whole->high - whole->low) / 2 / whole->step);
        const std::int64_t low = whole->low - steps * whole->step;
        if (is_low && (whole->low == 0 || (whole->low > 0 && whole->low == 1))) {
            return "";
        }
        return is_low ? text("int", whole->low > 0 ? std::max<std::int64_t>(whole->step == 1 ? 1 : low, low) : low,
                             whole->high)
                      : text("int", whole->low, whole->high + steps * whole->step);
    }
    return "";
}

/// A command that shows the first evaluation without a result.
std::string look_at_failure(const SummaryInput& input) {
    for (const auto& [id, individual] : input.population.individuals()) {
        if (search::has_failed(individual) && !individual.problem.empty()) {
            return fmt::format("see why it failed: {} show {} {}", input.commands.program, shell_argument(input.run),
                               to_text(id));
        }
    }
    return "";
}

/// A further search that begins with the best of this one: wider ranges, more epochs.
std::string further_search(const SummaryInput& input, const Advice& advice) {
    std::vector<std::string> settings{fmt::format("search.first={{run: {}, best: 5}}", input.run)};
    std::vector<std::string> purposes;
    const auto add = [&](const std::string& setting, const std::string& purpose) {
        settings.push_back(setting);
        if (setting.empty() || !input.accepts(settings)) {
            settings.pop_back();
        } else {
            purposes.push_back(purpose);
        }
    };
    for (const GeneEffect& effect : advice.effects) {
        const search::Gene& gene = input.space.genes[effect.gene];
        if (effect.bound != GeneEffect::Bound::none) {
            add(wider_range(gene, effect.bound),
                fmt::format("{} {}", effect.bound == GeneEffect::Bound::low ? "smaller" : "larger", gene.name));
        }
    }
    if (advice.wants_epochs && input.epochs) {
        add(fmt::format("training.epochs={}", 2 * *input.epochs), "more epochs");
    }
    return purposes.empty() ? ""
                            : fmt::format("search on from the best, with {}: {}", fmt::join(purposes, ", "),
                                          command(input, following_name(input.run), settings));
}

}  // namespace

bool is_single_training(const SummaryInput& input) {
    const auto& all = input.population.individuals();
    return input.facts.budget_evaluations == 1 && std::all_of(all.begin(), all.end(), [](const auto& entry) {
               return entry.second.bred_by == search::Operator::given;
           });
}

std::vector<std::string> next_steps(const SummaryInput& input, const Advice& advice) {
    std::vector<std::string> steps;
    const auto add = [&steps](std::string step) {
        if (!step.empty()) {
            steps.push_back(std::move(step));
        }
    };
    if (input.facts.state == RunState::running) {
        return {fmt::format("watch it: {} show {} --follow", input.commands.program, shell_argument(input.run))};
    }
    const bool is_search = !is_single_training(input);
    add(advice.has_result ? "" : look_at_failure(input));
    if (input.facts.state != RunState::complete) {
        add("resume it: " + command(input, input.run, {}));
    } else if (is_search && advice.has_result && advice.wants_evaluations && input.facts.budget_evaluations > 0) {
        const std::string more =
            fmt::format("search.budget.evaluations={}", std::max(fewest_proposed, 2 * input.facts.budget_evaluations));
        add(input.accepts({more}) ? "continue it: " + command(input, input.run, {more}) : "");
    }
    if (advice.has_result) {
        add(is_search ? further_search(input, advice) : "");
        add(fmt::format("look at it: {} {}", input.commands.report, shell_argument(input.run)));
        add(input.trains ? fmt::format("use its network: {} {} --format pytorch", input.commands.exporter,
                                       shell_argument(input.run))
                         : "");
    }
    return steps;
}

}  // namespace finch::report
