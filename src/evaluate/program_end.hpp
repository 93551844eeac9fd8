#pragma once

#include "finch/process/program.hpp"

#include <string>

/// Descriptions of the end of a program.
namespace finch::evaluate {

/// Returns the last lines that a program wrote, in their final form on a terminal: without escape sequences, and with
/// only the last state of a progress bar. Leaves out rows of dashes and the like, and what search::up_to_reason() does.
[[nodiscard]] std::string last_lines(const std::string& output);

[[nodiscard]] std::string how_it_ended(const process::Ended& ended);

/// True if a program's output says that its port is in use.
[[nodiscard]] bool is_port_taken(const std::string& said);

/// Returns the stop signal that ended the program or, if a shell reports it (exit code 128 + signal), the shell's
/// child; 0 if none did.
[[nodiscard]] int signal_of_stop(const process::Ended& ended);

}  // namespace finch::evaluate
