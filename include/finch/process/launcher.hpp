#pragma once

#include "finch/base/handle.hpp"
#include "finch/process/child.hpp"
#include "finch/process/program.hpp"

#include <string>
#include <sys/types.h>
#include <utility>

namespace finch::process {

/// The program `finch-launcher` in the folder of the running program, as the build puts it; empty if there is none.
[[nodiscard]] std::string launcher_beside_program();

/// A small process, the fork server, that starts programs on request. It is forked before MPI_Init and before there is
/// a thread: a fork later is unsafe with InfiniBand, and may copy a lock that is held.
///
/// Each program has a supervisor, forked by the fork server, which becomes the parent of every descendant that loses
/// its own (PR_SET_CHILD_SUBREAPER), ends them, and reports when none is left. Whichever process dies, of whatever
/// cause, the others end the programs that were in its care:
///
///     the caller      supervisors read an end of file: TERM, KILL after 2 s
///     the fork server      supervisors read an end of file: KILL
///     a supervisor    its program gets KILL from the kernel, the other descendants from the fork server
///
/// Helper and supervisors block all signals, since Slurm and terminals signal every process.
class Launcher {
public:
    /// First in main(). The fork server runs `executable`. Without it, it stays a copy of the caller, whose forks take
    /// as long as the caller has libraries and memory. Throws ApiError.
    [[nodiscard]] static Launcher fork(const std::string& executable = launcher_beside_program());

    Launcher(Launcher&& other) noexcept;
    Launcher& operator=(Launcher&&) = delete;
    /// KILL to all programs; waits until they and the fork server are gone, for 10 s at most.
    ~Launcher();

    /// Does not wait for the program to run: what is wrong with it is Ended::problem. Throws ApiError if there are no
    /// descriptors left or the fork server is gone.
    [[nodiscard]] Child start(const Program& program);

private:
    Launcher(FileDescriptor socket, pid_t fork_server) : socket_(std::move(socket)), fork_server_(fork_server) {}

    FileDescriptor socket_;
    pid_t fork_server_;
};

}  // namespace finch::process
