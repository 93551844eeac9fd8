#pragma once

#include <array>
#include <spdlog/spdlog.h>
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

/// Sets the default logger of this process. A silenced rank still logs warnings and errors.
void set_up_log(const LogOptions& options, int world_rank, bool is_leader);

/// A line at the bottom of a terminal that is rewritten in place; nothing where standard output is no terminal.
class LiveLine {
public:
    [[nodiscard]] static bool available() noexcept;
    static void show(const std::string& text);
    static void clear();
};

}  // namespace finch
