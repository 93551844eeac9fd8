#pragma once

#include <string>

namespace finch {

/// Returns the seconds since a fixed, unspecified time; the value never decreases. Use steady_seconds() to measure
/// durations.
[[nodiscard]] double steady_seconds() noexcept;

/// Returns the seconds since 1970 (UTC). Use unix_seconds() for times in files.
[[nodiscard]] double unix_seconds() noexcept;

/// Returns a time as text in local time: "2026-11-21 04:12:11".
[[nodiscard]] std::string date_and_time(double unix_seconds);

/// Returns a duration as readable text: "0.3 s", "42 s", "3 min 05 s", "2 h 11 min".
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace finch
