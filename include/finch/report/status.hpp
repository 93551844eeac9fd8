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

/// The progress of a run.
struct Status {
    RunState state = RunState::interrupted;
    std::string run;                         ///< the run directory
    std::size_t finished = 0;                ///< evaluations that have ended
    std::size_t unfinished = 0;              ///< individuals in training
    std::int64_t budget_evaluations = -1;    ///< −1: unlimited
    std::int64_t epochs = 0;                 ///< trained by all individuals
    std::int64_t budget_epochs = -1;         ///< −1: unlimited
    std::optional<search::Individual> best;  ///< best complete individual
    search::Outcomes outcomes;
    std::string config;       ///< the effective configuration's text
    search::Measure measure;  ///< the meaning of the loss
    /// The run number and the number of starts: "00c0ffee00c0ffee/3". "none" if no start was recorded.
    std::string start = "none";
    /// A number that grows with every result and every saved training: the number of finished individuals, plus the
    /// saved share of each unfinished training. Failures count only if the run has at least one result. The number also
    /// grows slightly if starts die without progress, but only a bounded number of times. These starts help Finch to
    /// find the individual that kills the processes.
    double progress = 0;
    double last_result = 0;           ///< Unix seconds; 0: none
    double evaluations_per_hour = 0;  ///< 0: unknown
    double deadline = 0;              ///< Unix seconds: end of the last start's job; 0: unknown
    std::string problem;              ///< why the run cannot be read; all other members are then unset
};

/// Returns the status of a run, without `measure`. Reads the archive and the journals only, no snapshots. Returns an
/// interrupted, empty run if the first start ended before it wrote an archive. Throws ConfigError if there is no run,
/// FileError if the run cannot be read.
[[nodiscard]] Status status(const store::RunDirectory& directory);

/// Returns the state of a run with the archived state `recorded`. A run counts as running as long as its lock is held.
[[nodiscard]] RunState state_of(const store::RunDirectory& directory, RunState recorded);
/// Returns the status of several runs. Sets `problem` for a run that cannot be read.
[[nodiscard]] std::vector<Status> statuses(const std::vector<store::RunDirectory>& directories);

/// Returns a line for each run, then the problems. `now`: Unix seconds.
[[nodiscard]] std::string status_table(const std::vector<Status>& runs, double now);

/// Returns the exit code of the run in the worst state. From worst to best: unreadable (2), without a result (78),
/// interrupted (76), stopped early (75), running (77), complete (0).
[[nodiscard]] int exit_code(const std::vector<Status>& runs);

/// Returns the name of a state: "complete", "stopped early", "interrupted", "running" or "gave up".
[[nodiscard]] std::string to_text(RunState state);
/// Returns the same as to_text(), but "complete without a result" for a complete run without a result.
[[nodiscard]] std::string state_text(RunState state, const search::Population& population);
[[nodiscard]] std::string state_text(const Status& status);

/// Returns the exit code of `finch status`.
[[nodiscard]] int exit_code(const Status& status);

/// Returns one line: "complete: runs/mnist, 200 of 200 evaluations, best loss 0.0312 (0.3.17)". If some evaluations
/// have no result, the line ends with ", 198 evaluated, 2 failed: …".
[[nodiscard]] std::string status_text(const Status& status);

/// Returns `progress`, `start` and status_text() in one line, for scripts: "12.2500000 00c0ffee00c0ffee/3 stopped
/// early: runs/mnist, …".
[[nodiscard]] std::string progress_text(const Status& status);

}  // namespace finch::report
