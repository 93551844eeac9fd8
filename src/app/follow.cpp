#include "finch/app/follow.hpp"

#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/run_state.hpp"
#include "finch/base/words.hpp"
#include "finch/report/sparkline.hpp"
#include "finch/report/status.hpp"
#include "finch/report/tables.hpp"
#include "finch/run/estimate.hpp"
#include "finch/run/progress_text.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <thread>

namespace finch::app {
namespace {

constexpr double follow_seconds = 2;  ///< between two updates
constexpr double most_follow_seconds = 30;
constexpr std::size_t followed_workers = 20;  ///< number of workers whose trainings are shown
constexpr std::size_t sparkline_columns = 40;
constexpr const char* how_to_quit = "Ctrl-C ends this view, not the run";

std::string best_line(const search::Population& population, const std::string& measure, const Terminal& terminal) {
    const std::vector<double> best = report::best_so_far(population, sparkline_columns);
    return best.empty() ? ""
                        : fmt::format("  best {} so far  {}  from {:.4g} to {:.4g}\n", measure,
                                      report::sparkline(best, terminal.has_unicode), best.front(), best.back());
}

/// The rate and the time left; empty if both are unknown.
std::string rate_line(const ReadRun& run, const search::Population& population, const report::Status& status,
                      const Terminal& terminal, double now) {
    const double hourly = report::evaluations_per_hour(run.recovered.facts);
    std::vector<std::string> parts;
    if (hourly > 0) {
        parts.push_back(fmt::format("{:.1f} evaluations per hour", hourly));
    }
    const auto left =
        status.state == RunState::running
            ? run::estimate_time_left(run.recovered.facts, population, run.config.budget, run.config.workers.slots, now)
            : std::nullopt;
    if (left) {
        parts.push_back(run::range_text(*left, terminal) + " left");
    }
    return parts.empty() ? "" : "  " + join(parts) + "\n";
}

/// Returns the lines of `text`, each cut to the width of the terminal.
std::vector<std::string> lines_of(const std::string& text, const Terminal& terminal) {
    std::istringstream all(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(all, line);) {
        lines.push_back(cut(line, static_cast<std::size_t>(terminal.columns), ellipsis_of(terminal)));
    }
    return lines;
}

}  // namespace

std::string with_bold_headings(const std::string& text, const Terminal& terminal) {
    std::istringstream lines(text);
    std::string out;
    for (std::string line; std::getline(lines, line);) {
        out += (line.empty() || line.front() == ' ' ? line : bold(line, terminal)) + "\n";
    }
    return out;
}

std::string followed_text(const ReadRun& run, const report::Status& status, const report::Top& top,
                          const Terminal& terminal, double now) {
    const config::Config& config = run.config;
    search::Population population(run.competition.exchange, std::max(1, run.recovered.facts.islands),
                                  run.competition.costs);
    run.recovered.merge_into(population);
    report::Status without_outcomes = status;
    without_outcomes.outcomes = {};
    const search::Outcomes outcomes(population);
    std::string text = report::status_text(without_outcomes) + "\n" +
                       best_line(population, config.measure.name, terminal) +
                       rate_line(run, population, status, terminal, now);
    if (outcomes.without_result() > 0) {
        text += "  " + outcomes.failure_counts() + outcomes.problems() + "\n";
    }
    text += "\n" + report::best_table(config.space, population, run.recovered.facts, top, config.measure.name) + "\n" +
            report::training_table(config.space, population, now, followed_workers) + "\n" +
            report::worker_table(run.recovered.facts);
    std::vector<std::string> lines = lines_of(text, terminal);
    if (status.state == RunState::running) {
        const auto room = static_cast<std::size_t>(std::max(4, terminal.rows - 1)) - 2;  // the cursor has the last row
        if (lines.size() > room) {
            lines.resize(room);
            lines.back() = "  ...";
        }
        lines.insert(lines.end(),
                     {"", cut(how_to_quit, static_cast<std::size_t>(terminal.columns), ellipsis_of(terminal))});
    }
    return join(lines, "\n") + "\n";
}

int follow(const ShowOptions& options) {
    std::string last;
    for (;;) {
        const double began = steady_seconds();
        const report::Status now = status_of(options.run);
        const bool ended = now.state != RunState::running;
        const std::string line = report::status_text(now);
        const Terminal output = terminal();
        if (output.can_rewrite) {
            const std::string text = followed_text(read_run(options.run), now, options.top, output, unix_seconds());
            fmt::print("\033[H\033[J{}", with_bold_headings(text, output));
        } else if (line != last) {
            fmt::print("{}  {}\n", date_and_time(unix_seconds()), line);
        }
        std::fflush(stdout);
        last = line;
        if (ended) {
            return exit_done;
        }
        // Waits longer for a large run, because reading the run and checking the lock of another host take time.
        const double pause = std::clamp(10 * (steady_seconds() - began), follow_seconds, most_follow_seconds);
        std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    }
}

}  // namespace finch::app
