#pragma once

#include "finch/base/log_options.hpp"

#include <spdlog/spdlog.h>
#include <string>

namespace finch {

/// Sets the default logger of this process. A silenced rank still logs warnings and errors.
void set_up_log(const LogOptions& options, int world_rank, bool is_leader);

/// Writes "finch: TEXT" to standard error. If that fails, nothing else does.
void complain(const std::string& text) noexcept;

/// A line at the bottom of a terminal that is rewritten in place; nothing if standard output is no terminal.
class LiveLine {
public:
    [[nodiscard]] static bool available() noexcept;
    static void show(const std::string& text);
    static void clear();
};

}  // namespace finch
