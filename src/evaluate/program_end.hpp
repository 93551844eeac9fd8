#pragma once

#include "finch/process/program.hpp"

#include <string>

/// What can be said of a program that has ended.
namespace finch::evaluate {

/// The last lines that a program wrote, as a terminal would show them in the end: without escape sequences, a progress
/// bar in its last state.
[[nodiscard]] std::string last_lines(const std::string& text);

[[nodiscard]] std::string how_it_ended(const process::Ended& ended);

/// Whether a program's output says that its port is in use.
[[nodiscard]] bool is_port_taken(const std::string& said);

/// The stop signal that ended the program or, as shells report it, the shell's child; 0 if none did.
[[nodiscard]] int signal_of_stop(const process::Ended& ended);

/// The first line of `errors` that looks like a report, in words; empty if there is none.
[[nodiscard]] std::string near_miss_in(const std::string& errors);

}  // namespace finch::evaluate
