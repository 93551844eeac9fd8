#pragma once

#include "finch/evaluate/report_line.hpp"
#include "finch/search/individual.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

namespace finch::evaluate {

/// Warnings about programs that delay a search, prevent pruning or report unlikely values. Each kind of warning is
/// logged once. All times are in steady seconds. Each worker's leader has one ProgramWarnings object.
class ProgramWarnings {
public:
    explicit ProgramWarnings(bool may_prune);

    /// Warns if ranks of a program still run long after another rank ended. `since`: when that rank ended.
    void ranks_wait(search::Id id, double since);
    /// Warns if a persistent program prints nothing for a long time. `since`: the time of its last line.
    void is_silent(search::Id id, double since);
    /// Warns if a program that has reported its last epoch prints nothing for a long time and still runs. `since`: the
    /// time of its last output. Returns for how many seconds the warning has been due.
    double does_not_exit(search::Id id, double since);
    /// Warns that a program printed 'finch done' for another individual, in the line `text`.
    void is_done_with_other(search::Id id, const std::string& text);
    /// Warns if a program ended with exit code 0 after fewer epochs than `all`.
    void has_ended(search::Id id, std::int64_t epochs, std::int64_t all);
    /// Warns that an interactive program ended and never asked 'finch stop?'.
    void has_not_asked(search::Id id);
    /// Warns that no heir can continue a program after `epoch`.
    void has_no_checkpoint(search::Id id, std::int32_t epoch, const std::string& why);
    /// Warns if the report `line` has an accuracy that is no fraction, or if its `epoch` is beyond the `epochs` of the
    /// configuration (0: not known).
    void check_report(search::Id id, const ReportLine& line, std::int64_t epoch, std::int64_t epochs);
    /// Warns if all reports of a program arrived near its end. `began`: the time at which the program started. `first`:
    /// the time of its first report; 0: no report in this start.
    void has_reported(search::Id id, std::size_t epochs, double began, double first);

private:
    /// Returns true the first time that it is called for `kind`.
    bool is_first(const char* kind) { return warned_.insert(kind).second; }

    bool may_prune_;
    double seconds_;  ///< of waiting or silence before a warning
    std::set<std::string> warned_;
};

}  // namespace finch::evaluate
