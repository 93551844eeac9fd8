#include "spawn.hpp"

#include "finch/base/format.hpp"
#include "finch/process/program_file.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <unistd.h>

namespace finch::process {
namespace {

constexpr int exit_not_started = 127;

/// What went wrong between vfork and exec; the two share their memory.
struct Failure {
    int code = 0;
    bool in_folder = false;
};

/// Of the child of a vfork: makes system calls alone.
[[noreturn]] void become(const ProgramImage& image, const Start& start, pid_t supervisor, Failure& failure) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != supervisor) {
        ::_exit(exit_not_started);
    }
    ::dup2(start.input.get(), STDIN_FILENO);
    ::dup2(start.output.get(), STDOUT_FILENO);
    ::dup2(start.errors.get(), STDERR_FILENO);
    if (const auto mask = image.cpu_mask(); !mask.empty()) {
        static_cast<void>(::sched_setaffinity(0, mask.size_bytes(), reinterpret_cast<const cpu_set_t*>(mask.data())));
    }
    failure.in_folder = ::chdir(image.folder()) != 0;
    if (!failure.in_folder) {
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        environ = const_cast<char**>(image.environment());
        ::execvp(image.arguments()[0], image.arguments());
    }
    failure.code = errno;
    ::_exit(exit_not_started);
}

/// Returns once the child has become the program, or has failed.
[[gnu::noinline]] pid_t vfork_program(const ProgramImage& image, const Start& start, Failure& failure) {
    const pid_t supervisor = ::getpid();
    const pid_t program = ::vfork();
    if (program == 0) {
        become(image, start, supervisor, failure);
    }
    if (program < 0) {
        failure.code = errno;
    }
    return program;
}

std::string search_path_of(const ProgramImage& image) {
    constexpr std::string_view name = "PATH=";
    for (char* const* variable = image.environment(); *variable != nullptr; ++variable) {
        if (std::string_view(*variable).starts_with(name)) {
            return *variable + name.size();
        }
    }
    return "/bin:/usr/bin";
}

std::string problem_of(const ProgramImage& image, const Failure& failure) {
    constexpr std::size_t most = 160;  // bytes: the reason has its place in Report::problem
    const std::string reason = std::strerror(failure.code);
    if (failure.in_folder) {
        return fmt::format("{}: {}", image.folder(), reason);
    }
    const std::string name = image.arguments()[0];
    const bool is_there = !program_file(name, search_path_of(image), image.folder()).empty();
    return fmt::format("{}{} cannot be started: {}{}", name.size() > most ? "…" : "",
                       name.substr(name.size() > most ? name.size() - most : 0), reason,
                       failure.code == ENOENT && is_there ? " (is the interpreter in its first line there?)" : "");
}

}  // namespace

pid_t spawn(const Start& start, Ended& ended) {
    const ProgramImage image(start.program);
    Failure failure;
    const pid_t program = vfork_program(image, start, failure);
    if (failure.code == 0) {
        return program;
    }
    ended.code = exit_not_started;
    ended.problem = problem_of(image, failure);
    return 0;
}

}  // namespace finch::process
