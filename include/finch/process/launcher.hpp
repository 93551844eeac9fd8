#pragma once

#include "finch/base/handle.hpp"
#include "finch/process/child.hpp"
#include "finch/process/program.hpp"

#include <string>
#include <sys/types.h>
#include <utility>

namespace finch::process {

/// Returns the path of `finch-launcher` in the folder of the running program, where the build puts it; empty if there
/// is none.
[[nodiscard]] std::string launcher_beside_program();

/// A small process, the fork server, that starts programs on request. The fork server is forked before MPI_Init and
/// before any thread starts. A later fork would be unsafe with InfiniBand and could copy a held lock.
///
/// The fork server forks a supervisor for each program. The supervisor adopts descendants of the program that lose
/// their parent (PR_SET_CHILD_SUBREAPER). The supervisor ends these descendants, and reports once none is left. If the
/// caller, the fork server or a supervisor dies for any reason, the remaining processes end its programs.
///
/// If the caller dies, the supervisors read an end of file, send TERM, and send KILL after 2 s.
/// If the fork server dies, the supervisors read an end of file and send KILL.
/// If a supervisor dies, the kernel kills its program, and the fork server kills the other descendants.
///
/// The fork server and the supervisors block all signals, because Slurm and terminals signal every process.
class Launcher {
public:
    /// Forks the fork server, which then runs `executable`. Call fork() first in main(). Without `executable`, the fork
    /// server remains a copy of the caller; its forks are slow if the caller has many libraries and much memory. Throws
    /// ApiError.
    [[nodiscard]] static Launcher fork(const std::string& executable = launcher_beside_program());

    Launcher(Launcher&& other) noexcept;
    Launcher& operator=(Launcher&&) = delete;
    /// Kills all programs. Waits up to 10 s until the programs and the fork server are gone.
    ~Launcher();

    /// Starts a program. Does not wait until the program runs; Ended::problem reports a failed start. Throws ApiError
    /// if no descriptors are left or the fork server is gone.
    [[nodiscard]] Child start(const Program& program);

private:
    Launcher(FileDescriptor socket, pid_t fork_server) : socket_(std::move(socket)), fork_server_(fork_server) {}

    FileDescriptor socket_;
    pid_t fork_server_;
};

}  // namespace finch::process
