#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace finch {

enum class LogLevel { debug, info, warning, error };
constexpr std::array<std::string_view, 4> words_of(LogLevel) {
    return {"debug", "info", "warning", "error"};
}
enum class LogRanks { leader, workers, all };
constexpr std::array<std::string_view, 3> words_of(LogRanks) {
    return {"leader", "workers", "all"};
}

/// The options of the log. The defaults apply until the configuration is known.
struct LogOptions {
    LogLevel level = LogLevel::info;
    LogRanks ranks = LogRanks::leader;  ///< ranks that log: world rank 0, all leaders of workers, or every rank
    std::string path;                   ///< empty: standard output; else a file (rank > 0 appends ".RANK")
    bool tee = false;                   ///< with `path`: also logs to standard output
    /// Number of batches of a training between two lines about it; empty: no such lines.
    std::optional<std::int64_t> batches = {};
    double interval_seconds = 10;  ///< seconds between two progress lines in a batch job's log
};

}  // namespace finch
