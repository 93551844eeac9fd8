#include "fork_server.hpp"

#include "finch/base/clock.hpp"

#include "descendants.hpp"
#include "messages.hpp"
#include "system_calls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace finch::process {
namespace {

constexpr int caller_died = SIGUSR1;       ///< sent by the kernel; ignored if the parent is still the caller
constexpr double supervisors_seconds = 3;  ///< for supervisors to end a dead caller's programs, before they must kill

class ForkServer {
public:
    ForkServer(FileDescriptor socket, FileDescriptor signals, pid_t caller)
        : caller_(caller), socket_(std::move(socket)), signals_(std::move(signals)), life_(make_pipe()) {}

    void run() {
        while (!closing_ || !supervisors_.empty() || has_orphans_) {
            if (steady_seconds() >= kill_time_) {
                life_.second.reset();
            }
            wait();
            reap();
            if (::getppid() != caller_) {
                close_within(supervisors_seconds);
            }
            if (has_orphans_) {
                end_orphans();
            }
        }
    }

private:
    void close_within(double seconds) {
        closing_ = true;
        kill_time_ = std::min(kill_time_, steady_seconds() + seconds);
    }

    void wait() {
        std::array<pollfd, 2> events{{{signals_.get(), POLLIN, 0}, {closing_ ? -1 : socket_.get(), POLLIN, 0}}};
        const double until_kill =
            life_.second && kill_time_ < never ? std::max(0.0, kill_time_ - steady_seconds()) : -1;
        poll_for(events, has_orphans_ ? look_seconds : until_kill);
        if (events[0].revents != 0) {
            drain_signals(signals_);
        }
        if (events[1].revents != 0) {
            serve();
        }
    }

    void serve() {
        Start start;
        const std::optional<Request> request = receive_request(socket_, start);
        if (!request) {
            close_within(supervisors_seconds);
        } else if (*request == Request::kill_all) {
            close_within(0);
        } else if (start.control) {  // the last descriptor: it is missing if no descriptors were left
            begin(std::move(start));
        }
    }

    void begin(Start start) {
        const pid_t supervisor = ::fork();
        if (supervisor == 0) {
            socket_.reset();
            life_.second.reset();
            supervisors_.clear();
            lost_.clear();
            run_supervisor(std::move(start), life_.first, signals_);
        }
        if (supervisor < 0) {
            send_packet(start.control, report_of({exit_of_node, 0, std::strerror(errno)}));
        } else {
            supervisors_.emplace(supervisor, std::move(start.control));
        }
    }

    void reap() {
        int status = 0;
        for (pid_t process = 0; (process = ::waitpid(-1, &status, WNOHANG)) > 0;) {
            const auto supervisor = supervisors_.find(process);
            if (supervisor == supervisors_.end()) {
                continue;
            }
            const bool reported = WIFEXITED(status) && WEXITSTATUS(status) != exit_failed;
            if (!reported) {
                lost_.push_back(std::move(supervisor->second));
            }
            has_orphans_ = has_orphans_ || !reported || WEXITSTATUS(status) != exit_reported;
            supervisors_.erase(supervisor);
        }
    }

    /// Kills descendants that supervisors left behind. The orphans are children of the fork server; if an orphan dies,
    /// its own children become children of the fork server. Once all orphans are gone, reports to the caller in place
    /// of the killed supervisors.
    void end_orphans() {
        has_orphans_ = false;
        for (const pid_t child : children(::getpid())) {
            if (!supervisors_.contains(child)) {
                has_orphans_ = true;
                ::kill(child, SIGKILL);
            }
        }
        if (!has_orphans_) {
            for (const FileDescriptor& control : lost_) {
                send_packet(control, report_of({0, SIGKILL, "the process that watched over it was killed"}));
            }
            lost_.clear();
        }
    }

    pid_t caller_;
    FileDescriptor socket_;
    FileDescriptor signals_;
    Pair life_;             ///< supervisors hold the read end; at its end of file, they must kill
    bool closing_ = false;  ///< the caller is gone, or wants all programs killed
    double kill_time_ = never;
    std::map<pid_t, FileDescriptor> supervisors_;  ///< control socket by process id
    bool has_orphans_ = false;
    std::vector<FileDescriptor> lost_;  ///< control sockets of supervisors that were killed
};

}  // namespace

void run_fork_server(FileDescriptor socket, pid_t caller) {
    ::prctl(PR_SET_NAME, "finch-launcher");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    try {
        FileDescriptor signals = detach(socket, std::array{SIGCHLD, caller_died});
        ::prctl(PR_SET_PDEATHSIG, caller_died);
        ForkServer(std::move(socket), std::move(signals), caller).run();
    } catch (...) {
        ::_exit(exit_failed);
    }
    ::_exit(0);
}

}  // namespace finch::process
