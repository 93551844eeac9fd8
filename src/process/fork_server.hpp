#pragma once

#include "finch/base/handle.hpp"

#include <sys/types.h>

namespace finch::process {

/// The calling process, just forked by `caller` with all signals blocked, starts programs as `socket` asks for, until
/// the caller is gone or wants all programs killed.
[[noreturn]] void run_fork_server(FileDescriptor socket, pid_t caller);

}  // namespace finch::process
