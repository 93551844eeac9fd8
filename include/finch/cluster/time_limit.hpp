#pragma once

#include <optional>
#include <string>

namespace finch::cluster {

/// Converts a time limit in the format of sbatch --time to seconds. Accepts MINUTES, MINUTES:SECONDS,
/// HOURS:MINUTES:SECONDS, DAYS-HOURS, DAYS-HOURS:MINUTES and DAYS-HOURS:MINUTES:SECONDS. Returns nothing for any other
/// text, or for 0.
[[nodiscard]] std::optional<double> parse_time_limit(const std::string& text);

/// Converts seconds to HOURS:MINUTES:SECONDS, rounded up to whole minutes: "2:05:00".
[[nodiscard]] std::string time_limit_text(double seconds);

/// Returns the end of this job in Unix seconds from the file FINCH_DEADLINE_FILE, which jobs/evolve.sbatch writes when
/// the time limit is extended; 0 if there is none.
[[nodiscard]] double extended_end_time();

}  // namespace finch::cluster
