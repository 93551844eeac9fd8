#pragma once

#include "finch/base/log_options.hpp"

#include <spdlog/spdlog.h>
#include <string>

namespace finch {

/// Sets the default logger of this process. A rank that LogOptions::ranks excludes still logs warnings and errors.
void set_up_log(const LogOptions& options, int world_rank, bool is_leader);

/// Writes "finch: TEXT" to standard error. Ignores a failure of this write.
void complain(const std::string& text) noexcept;

/// A progress line at the bottom of a terminal, rewritten in place. Does nothing if standard output is not a terminal.
class LiveLine {
public:
    [[nodiscard]] static bool available() noexcept;
    static void show(const std::string& text);
    static void clear();
};

}  // namespace finch
