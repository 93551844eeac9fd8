#pragma once

#include "finch/store/run_directory.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace finch::report {

/// complete: its budget is used. stopped_early: it ended in good order and waits to be resumed. interrupted: it ended
/// otherwise. running: its lock is held.
enum class RunState { complete, stopped_early, interrupted, running };

/// How far a run is.
struct Status {
    RunState state = RunState::interrupted;
    std::string run;                       ///< the run directory
    std::size_t settled = 0;               ///< individuals whose training has ended
    std::size_t unfinished = 0;            ///< individuals in training
    std::int64_t budget_evaluations = -1;  ///< −1: none
    std::optional<search::Individual> best;
    /// Grows with every result and every saved training, whatever becomes of it: results, and of each unfinished
    /// individual the number "progress", in [0, 1], that its file in state/ holds.
    double progress = 0;
};

/// From the run directory alone. Throws ConfigError where there is no run, FileError where it cannot be read.
[[nodiscard]] Status status(const store::RunDirectory& directory);

/// "complete", "stopped early", "interrupted" or "running".
[[nodiscard]] std::string to_text(RunState state);

/// One line: "complete: runs/mnist, 200 of 200 evaluations, best loss 0.0312 (0.3.17)".
[[nodiscard]] std::string status_text(const Status& status);

}  // namespace finch::report
