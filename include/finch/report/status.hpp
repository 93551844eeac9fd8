#pragma once

#include "finch/base/run_state.hpp"
#include "finch/search/measure.hpp"
#include "finch/search/outcomes.hpp"
#include "finch/store/run_directory.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace finch::report {

/// How far a run is.
struct Status {
    RunState state = RunState::interrupted;
    std::string run;                         ///< the run directory
    std::size_t finished = 0;                ///< evaluations that have ended
    std::size_t unfinished = 0;              ///< individuals in training
    std::int64_t budget_evaluations = -1;    ///< −1: none
    std::int64_t epochs = 0;                 ///< that all individuals trained
    std::int64_t budget_epochs = -1;         ///< −1: none
    std::optional<search::Individual> best;  ///< of those that are complete
    search::Outcomes outcomes;
    std::string config;       ///< the effective configuration's text
    search::Measure measure;  ///< what the best one's loss is
    /// Names the run and how often it was started, as "00c0ffee00c0ffee/3"; "none" where no start came to record
    /// itself.
    std::string start = "none";
    /// Grows with every result and every saved training: the finished, and of each unfinished individual the share of
    /// its training that is saved. Failures do not count as long as the run has no result. (A little, and a bounded
    /// number of times, also with starts that only brought the program nearer to the individual which ends its
    /// processes.)
    double progress = 0;
    double last_result = 0;           ///< Unix seconds; 0: none
    double evaluations_per_hour = 0;  ///< 0: not known yet
    double deadline = 0;              ///< Unix seconds at which the last start's job is over; 0: not known
    std::string problem;              ///< why the run cannot be read; then nothing else is known
};

/// All but the measure, from the archive and the journals alone: no snapshot is opened. A directory whose first start
/// ended before it wrote an archive holds an interrupted run of nothing. Throws ConfigError if there is no run,
/// FileError if it cannot be read.
[[nodiscard]] Status status(const store::RunDirectory& directory);

/// The state of a run whose archive says `recorded`: running as long as its lock is held.
[[nodiscard]] RunState state_of(const store::RunDirectory& directory, RunState recorded);
/// The same of several. One that cannot be read has a problem.
[[nodiscard]] std::vector<Status> statuses(const std::vector<store::RunDirectory>& directories);

/// A line for each run, then the problems; `now` in Unix seconds.
[[nodiscard]] std::string status_table(const std::vector<Status>& runs, double now);

/// Exit code of the worst of several runs: one cannot be read (2), has no result (78), is interrupted (76), stopped
/// early (75), running (77), or all are complete (0).
[[nodiscard]] int exit_code(const std::vector<Status>& runs);

/// "complete", "stopped early", "interrupted", "running" or "gave up".
[[nodiscard]] std::string to_text(RunState state);
/// The same, or "complete without a result".
[[nodiscard]] std::string state_text(RunState state, const search::Population& population);
[[nodiscard]] std::string state_text(const Status& status);

/// Exit code of `finch status`.
[[nodiscard]] int exit_code(const Status& status);

/// One line: "complete: runs/mnist, 200 of 200 evaluations, best loss 0.0312 (0.3.17)"; ", 198 evaluated, 2 failed: …"
/// where some gave no result.
[[nodiscard]] std::string status_text(const Status& status);

/// The same line behind `progress` and `start`, for scripts: "12.2500000 00c0ffee00c0ffee/3 stopped early: runs/mnist,
/// …".
[[nodiscard]] std::string progress_text(const Status& status);

}  // namespace finch::report
