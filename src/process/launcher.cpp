#include "finch/process/launcher.hpp"

#include "finch/base/error.hpp"

#include "fork_server.hpp"
#include "messages.hpp"
#include "system_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace finch::process {
namespace {

constexpr double goodbye_seconds = 10;

/// Returns why exec cannot start `program`; empty if it can.
std::string fault_of(const Program& program) {
    if (program.arguments.empty()) {
        return "no program is named";
    }
    const auto has_null = [](const std::string& text) { return text.find('\0') != std::string::npos; };
    if (has_null(program.folder) || std::any_of(program.arguments.begin(), program.arguments.end(), has_null) ||
        std::any_of(program.environment.begin(), program.environment.end(), has_null)) {
        return "a null byte in its arguments, environment or folder";
    }
    return {};
}

/// Replaces the fork server's process image by `executable`. Returns only if exec fails.
void execute(const std::string& executable, const FileDescriptor& socket, pid_t caller) {
    ::fcntl(socket.get(), F_SETFD, 0);
    ::execl(executable.c_str(), "finch-launcher", std::to_string(socket.get()).c_str(), std::to_string(caller).c_str(),
            nullptr);
}

}  // namespace

std::string launcher_beside_program() {
    std::error_code failure;
    const auto found = std::filesystem::read_symlink("/proc/self/exe", failure).replace_filename("finch-launcher");
    return ::access(found.c_str(), X_OK) == 0 ? found.string() : std::string();
}

Launcher Launcher::fork(const std::string& executable) {
    Pair sockets = make_sockets();
    const pid_t caller = ::getpid();
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &before);  // the fork server inherits this mask
    const pid_t fork_server = ::fork();
    if (fork_server == 0) {
        sockets.first.reset();
        execute(executable, sockets.second, caller);
        run_fork_server(std::move(sockets.second), caller);
    }
    const int code = errno;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (fork_server < 0) {
        errno = code;
        throw_errno("fork");
    }
    return {std::move(sockets.first), fork_server};
}

Launcher::Launcher(Launcher&& other) noexcept
    : socket_(std::move(other.socket_)), fork_server_(std::exchange(other.fork_server_, 0)) {}

Launcher::~Launcher() {
    if (!socket_) {
        return;
    }
    send_packet(socket_, Request::kill_all);
    pollfd end{socket_.get(), POLLIN, 0};
    int ready = -1;
    do {
        ready = poll_for({&end, 1}, goodbye_seconds);
    } while (ready < 0 && errno == EINTR);
    while (ready > 0 && ::waitpid(fork_server_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

Child Launcher::start(const Program& program) {
    if (const std::string fault = fault_of(program); !fault.empty()) {
        return Child(Ended{127, 0, fault});
    }
    Pair input = make_pipe();
    Pair output = make_pipe();
    Pair errors = make_pipe();
    Pair control = make_sockets();
    for (const FileDescriptor* ours : {&input.second, &output.first, &errors.first}) {
        set_nonblocking(*ours);
    }
    Start start{write_program(program), std::move(input.first), std::move(output.second), std::move(errors.second),
                std::move(control.second)};
    if (!send_start(socket_, start)) {
        throw_errno("no program can be started: the fork server does not answer");
    }
    return Child({std::move(input.second), std::move(start.input), std::move(output.first), std::move(errors.first),
                  std::move(control.first)},
                 program.output_bytes);
}

}  // namespace finch::process
