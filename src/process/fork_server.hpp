#pragma once

#include "finch/base/handle.hpp"

#include "messages.hpp"

#include <sys/types.h>

namespace finch::process {

/// The calling process, just forked by `caller` with all signals blocked, starts programs as `socket` asks for, until
/// the caller is gone or wants all programs killed.
[[noreturn]] void run_fork_server(FileDescriptor socket, pid_t caller);

/// What a supervisor's exit code says to the fork server.
constexpr int exit_reported = 0;
constexpr int exit_left_descendants = 1;  ///< and reported
constexpr int exit_failed = 2;            ///< without a report

/// The calling process, just forked by the fork server, starts a program, becomes the parent of its orphans, ends all
/// of them when it is told to, when the caller goes (`start.control`) or the fork server (`life`: then without grace),
/// and reports the end. `signals`: a signalfd for SIGCHLD.
[[noreturn]] void run_supervisor(Start start, const FileDescriptor& life, const FileDescriptor& signals);

}  // namespace finch::process
