#pragma once

#include "finch/base/log_options.hpp"

#include <cstddef>
#include <spdlog/spdlog.h>
#include <string>

namespace finch {

/// Sets the default logger of this process. On a terminal, lines begin with the time, elsewhere with date and time. A
/// rank that LogOptions::ranks excludes still logs warnings and errors.
void set_up_log(const LogOptions& options, int world_rank, bool is_leader);

/// Returns true if log lines appear on a terminal, which can also show a progress line.
[[nodiscard]] bool is_on_terminal(const LogOptions& options);

/// Returns the number of characters before the text of a line of world rank 0.
[[nodiscard]] std::size_t log_prefix(const LogOptions& options);

/// Writes "finch: TEXT" to standard error. Ignores a failure of this write.
void complain(const std::string& text) noexcept;

/// A progress line at the bottom of a terminal, rewritten in place, and cut to its width. Does nothing if standard
/// output is not a terminal.
class LiveLine {
public:
    [[nodiscard]] static bool available() noexcept;
    static void show(const std::string& text);
    static void clear();
};

}  // namespace finch
