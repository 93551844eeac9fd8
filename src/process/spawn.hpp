#pragma once

#include "messages.hpp"

#include <sys/types.h>

namespace finch::process {

/// Starts a program in a process group of its own, with default signals, no descriptor but 0, 1 and 2, and KILL when
/// the calling process dies. Returns its id; if it could not be started 0, with the reason in `ended`. All signals are
/// blocked in the caller.
[[nodiscard]] pid_t spawn(const Start& start, Ended& ended);

}  // namespace finch::process
