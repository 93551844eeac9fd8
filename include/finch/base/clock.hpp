#pragma once

#include <string>

namespace finch {

/// Seconds since some fixed moment; never goes back. For durations.
[[nodiscard]] double steady_seconds() noexcept;

/// Seconds since 1970 (UTC). For what is written into files.
[[nodiscard]] double unix_seconds() noexcept;

/// "2026-11-21 04:12:11" in local time.
[[nodiscard]] std::string date_and_time(double unix_seconds);

/// "0.3 s", "42 s", "3 min 05 s", "2 h 11 min": a duration as a person reads it.
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace finch
