#include "finch/base/clock.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/report/status.hpp"

#include "grid.hpp"

#include <algorithm>

namespace finch::report {
namespace {

/// Returns the progress as "120/200": in evaluations, or in epochs if only the epochs have a budget.
std::string progress_cell(const Status& run) {
    const bool has_epochs_alone = run.budget_evaluations < 0 && run.budget_epochs >= 0;
    const std::int64_t done = has_epochs_alone ? run.epochs : static_cast<std::int64_t>(run.finished);
    const std::int64_t budget = has_epochs_alone ? run.budget_epochs : run.budget_evaluations;
    return fmt::format("{}{}{}", done, budget >= 0 ? fmt::format("/{}", budget) : "",
                       has_epochs_alone ? " epochs" : "");
}

/// Returns the time until the budget of evaluations is used up, at the run's rate so far.
std::string budget_cell(const Status& run) {
    const double left = static_cast<double>(run.budget_evaluations) - static_cast<double>(run.finished);
    const bool is_known = run.state == RunState::running && run.evaluations_per_hour > 0 && left > 0;
    return is_known ? duration_text(left / run.evaluations_per_hour * 3600) : "-";
}

std::vector<std::string> line_of(const Status& run, double now) {
    if (!run.problem.empty()) {
        return {printable_line(run.run), "unreadable", "-", "-", "-", "-", "-", "-", "-"};
    }
    const bool has_deadline = run.state == RunState::running && run.deadline > now;
    return {printable_line(run.run),
            state_text(run),
            progress_cell(run),
            std::to_string(run.outcomes.without_result()),
            run.best ? fmt::format("{} {:.6g}", run.measure.name, run.best->loss) : "-",
            run.last_result > 0 ? duration_text(std::max(0.0, now - run.last_result)) + " ago" : "-",
            run.evaluations_per_hour > 0 ? fmt::format("{:.1f}", run.evaluations_per_hour) : "-",
            budget_cell(run),
            has_deadline ? duration_text(run.deadline - now) : "-"};
}

}  // namespace

std::string status_table(const std::vector<Status>& runs, double now) {
    Grid grid({"run", "state", "evaluations", "no result", "best", "last result", "per hour", "budget ends in",
               "job ends in"},
              Grid::Numbers::left);
    std::string problems;
    for (const Status& run : runs) {
        grid.add(line_of(run, now));
        problems += run.problem.empty() ? "" : printable(run.problem) + "\n";
    }
    return grid.text() + problems;
}

int exit_code(const std::vector<Status>& runs) {
    for (const int code : {exit_input, exit_no_result, exit_interrupted, exit_stopped, exit_running}) {
        if (std::any_of(runs.begin(), runs.end(), [code](const Status& run) {
                return (run.problem.empty() ? exit_code(run) : exit_input) == code;
            })) {
            return code;
        }
    }
    return exit_done;
}

}  // namespace finch::report
