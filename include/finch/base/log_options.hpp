#pragma once

#include <array>
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

/// Where the log goes. Before set_up_log() everything from `info` up goes to standard error.
struct LogOptions {
    LogLevel level = LogLevel::info;
    LogRanks ranks = LogRanks::leader;  ///< world rank 0 alone, the leaders of all workers, or every rank
    std::string path;                   ///< empty: standard output; else a file (rank > 0 appends ".RANK")
    double interval_seconds = 10;       ///< between two progress lines in a batch log
};

}  // namespace finch
