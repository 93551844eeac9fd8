#include "finch/base/clock.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/process/program_file.hpp"

#include "descendants.hpp"
#include "fork_server.hpp"
#include "messages.hpp"
#include "system_calls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <sched.h>
#include <set>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace finch::process {
namespace {

constexpr int exit_not_started = 127;

/// An error between vfork and exec. The parent and the child of vfork share the memory of this object.
struct Failure {
    int code = 0;
    bool in_folder = false;
};

/// Runs in the child of a vfork, so this function makes only system calls.
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

/// Starts the program with vfork. Returns once exec has succeeded or failed.
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
    constexpr std::size_t most = 160;  // bytes, so that the reason fits into Report::problem
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

/// True if the program's file is at fault, not its node: it is too large, no program, or not executable.
bool is_of_program(const ProgramImage& image, const Failure& failure) {
    if (failure.code != EACCES || failure.in_folder) {
        return !is_storage_failure(failure.code) || failure.code == E2BIG || failure.code == ENOEXEC ||
               failure.code == ETXTBSY;
    }
    const std::string name = image.arguments()[0];
    std::error_code hidden;
    static_cast<void>(std::filesystem::status(std::filesystem::path(image.folder()) / name, hidden));
    return hidden != std::errc::permission_denied && program_file(name, search_path_of(image), image.folder()).empty();
}

/// Starts a program in its own process group, with default signals and only the descriptors 0, 1 and 2. The kernel
/// kills the program if the calling process dies. Returns the program's process id. If the program could not be
/// started, returns 0 and puts the reason into `ended`. All signals must be blocked in the caller.
pid_t spawn(const Start& start, Ended& ended) {
    const ProgramImage image(start.program);
    Failure failure;
    const pid_t program = vfork_program(image, start, failure);
    if (failure.code == 0) {
        return program;
    }
    ended.code = is_of_program(image, failure) ? exit_not_started : exit_of_node;
    ended.problem = problem_of(image, failure);
    return 0;
}

constexpr double drain_seconds = 1;           ///< for filters of the program's output, after the program's end
constexpr double outlived_grace_seconds = 2;  ///< for descendants that outlive the program or the caller
constexpr double give_up_seconds = 30;        ///< after KILL: for another user's process, or a file server that hangs

class Supervisor {
public:
    Supervisor(Start start, const FileDescriptor& life, const FileDescriptor& signals)
        : control_(std::move(start.control)),
          life_(life),
          signals_(signals),
          output_(status_of(start.output)),
          errors_(status_of(start.errors)),
          program_(spawn(start, ended_)),
          group_(program_) {}

    /// Supervises the program. Returns the supervisor's exit code.
    int run() {
        bool all_gone = reap();
        while (!all_gone && steady_seconds() < kill_time_ + give_up_seconds) {
            const bool outlived = program_ == 0 && !has_grace_;
            if (outlived && kill_time_ == never && !drains()) {
                is_cut_off_ = true;
                end_within(outlived_grace_seconds);
            }
            const bool ending = kill_time_ < never;
            const bool told = ending && tell_descendants();
            wait(told ? 0 : ending || outlived ? look_seconds : -1);
            all_gone = reap();
        }
        if (!all_gone) {
            ended_.problem = fmt::format("{} of its processes cannot be ended", children(::getpid()).size());
        }
        send_packet(control_, report_of(ended_, ended_at_));
        return all_gone ? exit_reported : exit_left_descendants;
    }

private:
    static struct stat status_of(const FileDescriptor& file) {
        struct stat status {};
        ::fstat(file.get(), &status);
        return status;
    }

    /// True if the program has just ended and a descendant still holds its standard output or standard error. The
    /// descendant may be a filter with the last lines, as in bash's "exec > >(tee log)".
    [[nodiscard]] bool drains() const {
        if (steady_seconds() >= drained_at_) {
            return false;
        }
        const std::vector<pid_t> left = descendants(::getpid());
        return std::any_of(left.begin(), left.end(),
                           [this](pid_t process) { return has_open(process, output_) || has_open(process, errors_); });
    }

    void end_within(double seconds) { kill_time_ = std::min(kill_time_, steady_seconds() + seconds); }

    /// Reaps ended children. Returns true if no child is left, and therefore no descendant.
    bool reap() {
        int status = 0;
        pid_t process = 0;
        while ((process = ::waitpid(-1, &status, WNOHANG)) > 0) {
            if (process == program_) {
                program_ = 0;
                drained_at_ = steady_seconds() + drain_seconds;
                ended_at_ = unix_seconds();
                ended_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
                ended_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
            }
        }
        return process < 0;
    }

    /// Sends TERM once to every descendant; after the grace period, sends KILL. Returns true if there were new
    /// descendants, which may have forked in the meantime.
    bool tell_descendants() {
        const bool kill = steady_seconds() >= kill_time_;
        std::set<pid_t>& told = kill ? killed_ : terminated_;
        bool found_new = false;
        for (const pid_t process : descendants(::getpid())) {
            const bool is_new = told.insert(process).second;
            found_new = found_new || is_new;
            if (kill) {
                ::kill(process, SIGKILL);  // repeated: the id may belong to a new process by now
            } else if (is_new) {
                ended_.cut_off += is_cut_off_ && has_open(process, output_) ? 1 : 0;
                ::kill(process, SIGTERM);
                ::kill(process, SIGCONT);  // a stopped process handles TERM only after CONT
            }
        }
        return found_new;
    }

    /// Waits up to `seconds` for an event, and handles the event.
    void wait(double seconds) {
        std::array<pollfd, 3> events{{{signals_.get(), POLLIN, 0},
                                      {fork_server_gone_ ? -1 : life_.get(), POLLIN, 0},
                                      {control_.get(), POLLIN, 0}}};
        poll_for(events, seconds);
        if (events[0].revents != 0) {
            drain_signals(signals_);
        }
        if (events[1].revents != 0) {
            fork_server_gone_ = true;
            end_within(0);
        }
        if (events[2].revents != 0) {
            obey();
        }
    }

    /// Sends a signal to the program's process group. The group's number cannot be reused while a child of this process
    /// in the group runs or is not reaped yet.
    void signal_group(int number) {
        if (program_ > 0) {
            ::kill(-program_, number);
            return;
        }
        for (const pid_t process : descendants(::getpid())) {
            if (::getpgid(process) == group_) {
                ::kill(process, number);
            }
        }
    }

    void obey() {
        Order order{};
        Received received = receive_packet(control_, order);
        for (; received == Received::packet; received = receive_packet(control_, order)) {
            has_grace_ = true;
            if (order.kind == Order::Kind::end) {
                end_within(order.grace_seconds);
            } else {
                signal_group(order.signal_number);
            }
        }
        if (received == Received::end_of_file) {
            control_.reset();
            end_within(outlived_grace_seconds);
        }
    }

    FileDescriptor control_;
    const FileDescriptor& life_;
    const FileDescriptor& signals_;
    bool fork_server_gone_ = false;
    struct stat output_;  ///< the program's pipes
    struct stat errors_;
    Ended ended_;
    double ended_at_ = 0;      ///< Unix seconds
    double drained_at_ = 0;    ///< steady seconds: the time for filters of its output ends; 0 if it never ran
    pid_t program_;            ///< 0 once it has ended
    pid_t group_;              ///< its process group; other processes of a shell pipeline may outlive it there
    bool has_grace_ = false;   ///< after a signal, descendants may run until an order to end
    bool is_cut_off_ = false;  ///< descendants are ended only because they outlived the program
    double kill_time_ = never;
    std::set<pid_t> terminated_;
    std::set<pid_t> killed_;
};

}  // namespace

void run_supervisor(Start start, const FileDescriptor& life, const FileDescriptor& signals) {
    ::prctl(PR_SET_NAME, "finch-supervise");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::setsid();
    Supervisor supervisor(std::move(start), life, signals);
    ::_exit(supervisor.run());
}

}  // namespace finch::process
