#pragma once

#include "finch/base/handle.hpp"

#include "messages.hpp"

#include <sys/types.h>

namespace finch::process {

/// Turns the calling process into the fork server, which starts a program for each request on `socket`. The fork server
/// ends once the caller is gone or wants all programs killed. `caller` has just forked this process with all signals
/// blocked.
[[noreturn]] void run_fork_server(FileDescriptor socket, pid_t caller);

/// Exit codes with which a supervisor reports to the fork server.
constexpr int exit_reported = 0;
constexpr int exit_left_descendants = 1;  ///< the supervisor has reported
constexpr int exit_failed = 2;            ///< the supervisor has not reported

/// Turns the calling process, just forked by the fork server, into a supervisor. The supervisor starts a program,
/// adopts its orphaned descendants, and reports their end. The supervisor ends all of these processes on request, or if
/// the caller dies (end of file on `start.control`). If the fork server dies (end of file on `life`), the supervisor
/// ends these processes without grace. `signals`: a signalfd for SIGCHLD.
[[noreturn]] void run_supervisor(Start start, const FileDescriptor& life, const FileDescriptor& signals);

}  // namespace finch::process
