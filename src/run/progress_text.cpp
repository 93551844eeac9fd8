#include "finch/run/progress_text.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/enum_words.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/search/outcomes.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace finch::run {
namespace {

constexpr std::size_t widest_line = 110;
constexpr std::size_t fewest_gene_columns = 12;
constexpr std::size_t bar_columns = 16;
constexpr std::size_t shown_trainings = 4;

std::string bar_text(double share, std::size_t columns, bool has_unicode) {
    const auto full = static_cast<std::size_t>(share * static_cast<double>(columns));
    std::string text = has_unicode ? "" : "[";
    for (std::size_t i = 0; i < columns; ++i) {
        text += has_unicode ? (i < full ? "█" : "░") : (i < full ? "#" : "-");
    }
    return text + (has_unicode ? " " : "] ");
}

/// Returns the running trainings: "2 running, epoch 3/8, 2/8", or "2 running" if no epoch is known.
std::string trainings_text(const ProgressFacts& facts) {
    const bool has_epochs = std::any_of(facts.trainings.begin(), facts.trainings.end(),
                                        [](const TrainingProgress& one) { return one.epochs > 0 || one.whole > 0; });
    if (!has_epochs) {
        return fmt::format("{} running", facts.running);
    }
    std::vector<std::string> epochs;
    for (const TrainingProgress& one : facts.trainings) {
        epochs.push_back(one.whole > 0 ? fmt::format("{}/{}", std::min(one.epochs + 1, one.whole), one.whole)
                                       : std::to_string(one.epochs));
    }
    const bool has_more = epochs.size() > shown_trainings;
    epochs.resize(std::min(epochs.size(), shown_trainings));
    return fmt::format("{} running, epoch {}{}", facts.running, fmt::join(epochs, ", "), has_more ? ", ..." : "");
}

/// The part of a line about the best individual. `measure` may be empty.
std::string best_text(const ProgressFacts& facts, const std::string& measure, const Terminal& terminal) {
    const std::string value = measure + (measure.empty() ? "" : " ") + fmt::format("{:.5g}", *facts.best);
    const bool has_star = facts.is_new_best && terminal.can_rewrite && terminal.has_unicode;
    return (facts.is_new_best && !has_star ? "new best " : "best ") + value + (has_star ? " ★" : "");
}

/// Returns the line with a bar of `columns`, 0: none. `measure`: the name of the loss, may be empty.
std::string line_of(const ProgressFacts& facts, const Terminal& terminal, std::size_t columns,
                    const std::string& measure) {
    std::vector<std::string> parts;
    parts.push_back(facts.evaluations ? fmt::format("{}/{}", facts.finished, *facts.evaluations)
                                      : counted(static_cast<std::int64_t>(facts.finished), "evaluation"));
    if (facts.budget_epochs) {
        parts.push_back(fmt::format("{}/{} epochs", facts.epochs, *facts.budget_epochs));
    }
    if (facts.best) {
        parts.push_back(best_text(facts, measure, terminal));
    }
    if (!facts.failures.empty()) {
        parts.push_back(facts.failures);
    }
    if (!facts.best && facts.running > 0) {
        parts.push_back(trainings_text(facts));
    }
    if (facts.left) {
        parts.push_back(range_text(*facts.left, terminal) + " left");
    }
    return (columns > 0 && facts.used ? bar_text(*facts.used, columns, terminal.has_unicode) : "") +
           join(parts, terminal.has_unicode ? " · " : ", ");
}

/// A unit of time, and the number of seconds below which it is used.
struct TimeUnit {
    const char* name;
    double seconds;
    double below;
    bool has_decimals;
};
constexpr TimeUnit time_units[] = {
    {"s", 1, 120, false}, {"min", 60, 120 * 60, false}, {"h", 3600, 48 * 3600, true}, {"d", 86400, 1e300, true}};

/// Returns the largest multiple of `step` that is not above `value`; tolerates rounding errors.
double rounded_down(double value, double step) {
    return step * std::floor(value / step + 1e-9);
}

/// Returns the text behind the id in the line of a finished individual, without genes.
std::string outcome_text(const search::Individual& individual, const ResultLine& line, const Terminal& terminal) {
    const bool has_star = line.is_new_best && terminal.can_rewrite && terminal.has_unicode;
    std::vector<std::string> parts;
    if (individual.outcome != search::Outcome::evaluated) {
        parts.emplace_back(word(individual.outcome));
    }
    if (search::has_failed(individual)) {
        return join(parts);
    }
    if (std::isfinite(individual.loss)) {
        parts.push_back(fmt::format("{}{} {:.5g}{}", line.is_new_best && !has_star ? "new best " : "", line.measure,
                                    individual.loss, has_star ? " ★" : ""));
    }
    if (std::isfinite(individual.accuracy) && !line.is_rate) {
        parts.push_back(fmt::format("accuracy {:.2f} %", 100 * individual.accuracy));
    }
    if (individual.is_reused()) {
        parts.push_back("as " + to_text(individual.reused_from) +
                        (individual.is_of_another_run() ? " of another run" : ""));
    } else if (individual.own_epochs() > 0) {
        parts.push_back(fmt::format("{} in {}", counted(individual.own_epochs(), "epoch"),
                                    duration_text(individual.training_seconds)));
    }
    return join(parts);
}

}  // namespace

std::string range_text(const Estimate& seconds, const Terminal& terminal) {
    const TimeUnit& unit = *std::find_if(std::begin(time_units), std::end(time_units),
                                         [&](const TimeUnit& one) { return seconds.high < one.below; });
    const double step = unit.has_decimals && seconds.high < 10 * unit.seconds ? 0.1 : 1;
    const double low = rounded_down(seconds.low / unit.seconds, step);
    const double high = -rounded_down(-seconds.high / unit.seconds, step);
    if (low <= 0) {
        return fmt::format("at most {:.3g} {}", std::max(high, step), unit.name);
    }
    if (high - low < 1.5 * step && low > 4.5 * step) {
        return fmt::format("about {:.3g} {}", step * std::round(seconds.expected / unit.seconds / step), unit.name);
    }
    return fmt::format("{:.3g}{}{:.3g} {}", low, terminal.has_unicode ? "–" : "-", high, unit.name);
}

std::string progress_text(const ProgressFacts& facts, const Terminal& terminal) {
    if (!terminal.can_rewrite) {
        return line_of(facts, terminal, 0, facts.measure);
    }
    const auto most = static_cast<std::size_t>(std::max(1, terminal.columns - 1));
    const Ellipsis ellipsis = ellipsis_of(terminal);
    std::string text;
    for (const auto& [columns, measure] :
         {std::pair(bar_columns, facts.measure), std::pair(bar_columns / 2, facts.measure),
          std::pair(std::size_t{0}, facts.measure), std::pair(std::size_t{0}, std::string())}) {
        text = line_of(facts, terminal, columns, measure);
        if (characters_in(text) <= most) {
            return text;
        }
    }
    return cut(text, most, ellipsis);
}

std::string result_text(const search::Individual& individual, const ResultLine& line, const Terminal& terminal) {
    const std::size_t widest =
        terminal.can_rewrite ? std::min(widest_line, static_cast<std::size_t>(terminal.columns)) : widest_line;
    const std::size_t most = widest - std::min(widest, line.prefix);
    const Ellipsis ellipsis = ellipsis_of(terminal);
    std::string text = to_text(individual.id);
    text += individual.is_repeat() ? fmt::format(" repeats {}: ", to_text(individual.parents[0])) : ": ";
    text += outcome_text(individual, line, terminal);
    if (!individual.problem.empty()) {
        text += ": " + (terminal.can_rewrite ? search::telling_line(individual.problem)
                                             : search::one_line(individual.problem));
    }
    const std::string more = line.more > 0 ? fmt::format(" (and {} more)", line.more) : "";
    const std::string genes = search::genome_text(line.space, individual.genome);
    const std::size_t used = characters_in(text) + characters_in(more) + std::string(" []").size();
    if (!genes.empty() && used + std::min(fewest_gene_columns, characters_in(genes)) <= most) {
        text += fmt::format(" [{}]", cut(genes, most - used, ellipsis));
    }
    text += more;
    return terminal.can_rewrite ? cut(text, most, ellipsis) : text;
}

std::string on_one_row(const std::string& text, std::size_t prefix, const Terminal& terminal) {
    const auto columns = static_cast<std::size_t>(terminal.columns);
    return terminal.can_rewrite ? cut(text, columns - std::min(columns, prefix), ellipsis_of(terminal)) : text;
}

}  // namespace finch::run
