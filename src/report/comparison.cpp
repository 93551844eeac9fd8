#include "finch/report/comparison.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/loss_order.hpp"
#include "finch/base/printable.hpp"
#include "finch/base/words.hpp"
#include "finch/report/energy.hpp"
#include "finch/report/status.hpp"
#include "finch/report/tables.hpp"

#include "grid.hpp"
#include "population_of.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace finch::report {
namespace {

/// What is compared of one run.
struct Findings {
    const Compared& run;
    search::Population population;
    std::vector<const search::Individual*> complete;  ///< in the order in which they ended

    explicit Findings(const Compared& compared) : run(compared), population(population_of(compared.recovered)) {
        for (const auto& [id, one] : population.individuals()) {
            if (one.is_complete() && !one.is_repeat()) {
                complete.push_back(&one);
            }
        }
        std::stable_sort(complete.begin(), complete.end(),
                         [](const auto* a, const auto* b) { return a->finished < b->finished; });
    }

    [[nodiscard]] double best_loss() const {
        const search::Individual* const best = population.best();
        return best != nullptr && best->is_complete() ? best->loss : std::numeric_limits<double>::infinity();
    }
};

/// Seconds that the run had been up at `time`: what lies between its starts does not count. `weight` of a start
/// multiplies its part.
template <class Weight>
double seconds_until(const store::ArchiveFacts& facts, double time, Weight weight) {
    const auto lasted = store::seconds_of_starts(facts);
    double seconds = 0;
    for (const store::Start& start : facts.starts) {
        seconds += weight(start) * std::clamp(time - start.began, 0.0, lasted.at(start.restart));
    }
    return seconds;
}

constexpr double end_of_time = std::numeric_limits<double>::max();

std::string number(double value) {
    return std::isfinite(value) ? fmt::format("{:.6g}", value) : "-";
}

/// "37 evaluations, 12 min": until the first that was as good as `loss`.
std::string reached(const Findings& one, double loss) {
    const auto first = std::find_if(one.complete.begin(), one.complete.end(),
                                    [&](const auto* individual) { return !is_better_loss(loss, individual->loss); });
    if (first == one.complete.end()) {
        return "-";
    }
    std::int64_t settled = 0;
    for (const auto& [id, individual] : one.population.individuals()) {
        settled += individual.finished_training() && individual.finished <= (*first)->finished ? 1 : 0;
    }
    const double seconds =
        seconds_until(one.run.recovered.facts, (*first)->finished, [](const store::Start&) { return 1.0; });
    return fmt::format("{}, {}", counted(settled, "evaluation"), duration_text(seconds));
}

}  // namespace

std::string comparison_table(std::span<const Compared> runs) {
    std::vector<Findings> found;
    std::vector<std::string> head{""};
    std::optional<double> worst;
    for (const Compared& run : runs) {
        const double best = found.emplace_back(run).best_loss();
        worst = worst && !is_better_loss(*worst, best) ? *worst : best;
        head.push_back(printable_line(run.name));
    }
    const double shared = worst.value_or(std::numeric_limits<double>::infinity());  // reached by all of them
    Grid grid(head, Grid::Numbers::left);
    const auto row = [&](const std::string& title, const auto& cell) {
        std::vector<std::string> line{title};
        for (const Findings& one : found) {
            line.push_back(cell(one));
        }
        grid.add(std::move(line));
    };
    const auto facts = [](const Findings& one) -> const store::ArchiveFacts& { return one.run.recovered.facts; };
    row("state", [&](const Findings& one) { return to_text(facts(one).state); });
    row("minimises", [](const Findings& one) { return objectives_text(one.run.competition); });
    row("evaluations", [](const Findings& one) { return std::to_string(one.population.evaluations()); });
    row("epochs", [](const Findings& one) { return std::to_string(one.population.epochs()); });
    row("outcomes", [](const Findings& one) { return outcome_words(one.population); });
    row("ran for", [&](const Findings& one) {
        return duration_text(seconds_until(facts(one), end_of_time, [](const store::Start&) { return 1.0; }));
    });
    row("node-hours", [&](const Findings& one) {
        const auto nodes = [](const store::Start& start) { return static_cast<double>(start.nodes); };
        return number(seconds_until(facts(one), end_of_time, nodes) / 3600);
    });
    row("energy", [](const Findings& one) {
        const std::string text = energy_text(energy_totals(one.population));
        return text.empty() ? "-" : text;
    });
    const search::Measure& measure = runs.front().competition.measure;
    const bool comparable = std::all_of(
        runs.begin(), runs.end(), [&](const Compared& run) { return run.competition.measure.title == measure.title; });
    row(comparable ? "best " + measure.name : "best", [&](const Findings& one) {
        return comparable ? number(one.best_loss())
                          : fmt::format("{} {}", one.run.competition.measure.name, number(one.best_loss()));
    });
    row("its id", [](const Findings& one) {
        const search::Individual* const best = one.population.best();
        return best != nullptr && best->is_complete() ? to_text(best->id) : "-";
    });
    row("its genes", [](const Findings& one) {
        const search::Individual* const best = one.population.best();
        return best != nullptr && best->is_complete() ? search::genome_text(one.run.space, best->genome) : "-";
    });
    if (comparable) {
        row(fmt::format("until {} {}", measure.name, number(shared)),
            [&](const Findings& one) { return reached(one, shared); });
    }
    return grid.text();
}

}  // namespace finch::report
