#pragma once

#include <optional>
#include <string>

namespace finch::cluster {

/// Seconds of a time limit as sbatch's --time takes it: MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, DAYS-HOURS,
/// DAYS-HOURS:MINUTES, DAYS-HOURS:MINUTES:SECONDS. Nothing if it is none of these, or 0.
[[nodiscard]] std::optional<double> parse_time_limit(const std::string& text);

/// "2:05:00": HOURS:MINUTES:SECONDS, rounded up to whole minutes.
[[nodiscard]] std::string time_limit_text(double seconds);

}  // namespace finch::cluster
