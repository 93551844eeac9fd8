#include "finch/cluster/signals.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <doctest/doctest.h>
#include <functional>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace finch;
using namespace finch::cluster;

namespace {

/// Runs `body` in a child process and returns its status for WIFEXITED and WIFSIGNALED. If `body` hangs, the timeout of
/// the test ends it.
int in_child(const std::function<int()>& body) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::_Exit(body());
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return status;
}

/// Returns the exit code of `body` in a child process, or -1 if a signal ended it.
int exit_code(const std::function<int()>& body) {
    const int status = in_child(body);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Calls catch_signals() with `seconds_left`, raises `signals`, and returns the remaining seconds of the alarm.
int alarm_after(const std::vector<int>& signals, int seconds_left) {
    return exit_code([&] {
        catch_signals(seconds_left > 0 ? static_cast<double>(::time(nullptr) + seconds_left) : 0);
        for (const int signal : signals) {
            std::raise(signal);
        }
        return static_cast<int>(::alarm(0));
    });
}

/// Returns whether `seconds` is `expected` or 1 less. A second may pass between setting and reading the alarm.
bool near(int seconds, int expected) {
    return seconds == expected || seconds == expected - 1;
}

}  // namespace

TEST_CASE("catch_signals: each signal sets its stop request, and an urgent request remains urgent") {
    struct Row {
        std::vector<int> signals;
        StopRequest request;
    };
    const std::vector<Row> rows{
        {{}, StopRequest::none},
        {{SIGUSR2}, StopRequest::orderly},
        {{SIGUSR1}, StopRequest::orderly},
        {{SIGHUP}, StopRequest::orderly},
        {{SIGHUP, SIGHUP, SIGUSR1}, StopRequest::orderly},
        {{SIGTERM, SIGUSR1}, StopRequest::urgent},
        {{SIGINT}, StopRequest::orderly},
        {{SIGXCPU, SIGXCPU}, StopRequest::orderly},
        {{SIGTERM}, StopRequest::urgent},
        {{SIGINT, SIGINT}, StopRequest::urgent},
        {{SIGUSR2, SIGUSR2}, StopRequest::orderly},
        {{SIGUSR2, SIGTERM}, StopRequest::urgent},
        {{SIGTERM, SIGUSR2}, StopRequest::urgent},
    };
    for (std::size_t row = 0; row < rows.size(); ++row) {
        CAPTURE(row);
        const int code = exit_code([&] {
            catch_signals(0);
            for (const int signal : rows[row].signals) {
                std::raise(signal);
            }
            return static_cast<int>(stop_request());
        });
        CHECK(code == static_cast<int>(rows[row].request));
    }
}

TEST_CASE("catch_signals: a SIGHUP that nohup ignores stays ignored, also after release_signals()") {
    const int code = exit_code([] {
        ::signal(SIGHUP, SIG_IGN);
        catch_signals(0);
        ::signal(SIGHUP, [](int) { std::_Exit(9); });
        catch_signals(0);
        std::raise(SIGHUP);
        release_signals();
        std::raise(SIGHUP);
        return static_cast<int>(stop_request());
    });

    CHECK(code == static_cast<int>(StopRequest::none));
}

TEST_CASE("catch_signals: does not replace a library's SIGUSR1 handler, but replaces its SIGHUP handler") {
    const int code = exit_code([] {
        catch_signals(0);
        for (const int signal : {SIGUSR1, SIGHUP}) {
            ::signal(signal, [](int) {});
        }
        catch_signals(0);
        std::raise(SIGUSR1);
        const bool left = stop_request() == StopRequest::none;
        std::raise(SIGHUP);
        return left && stop_request() == StopRequest::orderly ? 0 : 1;
    });

    CHECK(code == 0);
}

TEST_CASE("is_stop_signal: true for each signal that catch_signals() treats as a stop request") {
    for (int signal = 1; signal < SIGRTMIN; ++signal) {
        const bool is_one = signal == SIGUSR1 || signal == SIGUSR2 || signal == SIGHUP || signal == SIGTERM ||
                            signal == SIGINT || signal == SIGXCPU;
        CHECK(is_stop_signal(signal) == is_one);
    }
}

TEST_CASE("reserve_cpu_seconds: the soft limit is below the hard limit, at which the kernel kills the process") {
    const auto soft_limit = [](rlim_t soft, rlim_t hard, int cpus) {
        return exit_code([&] {
            const struct rlimit limit { soft, hard };
            ::setrlimit(RLIMIT_CPU, &limit);
            reserve_cpu_seconds(cpus);
            struct rlimit now {};
            ::getrlimit(RLIMIT_CPU, &now);
            return now.rlim_cur == RLIM_INFINITY ? 255 : static_cast<int>(now.rlim_cur);
        });
    };

    CHECK(soft_limit(200, 200, 2) == 160);
    CHECK(soft_limit(200, 200, 64) == 150);
    CHECK(soft_limit(100, 200, 2) == 100);
    CHECK(soft_limit(RLIM_INFINITY, RLIM_INFINITY, 2) == 255);
}

TEST_CASE("without catch_signals, a signal ends the process") {
    CHECK(exit_code([] { return std::raise(SIGUSR2); }) == -1);
}

TEST_CASE("alarm: fires ten seconds after SIGTERM; after SIGUSR2, it fires shortly before the deadline") {
    CHECK(near(alarm_after({SIGTERM}, 0), 10));
    CHECK(near(alarm_after({SIGUSR2}, 0), 120));
    CHECK(near(alarm_after({SIGUSR2}, 75), 70));
    CHECK(near(alarm_after({SIGINT}, 75), 70));
    CHECK(near(alarm_after({SIGUSR2}, 3), 5));
}

TEST_CASE("alarm: a SIGTERM after SIGUSR2 shortens it, and no signal extends it") {
    CHECK(near(alarm_after({SIGUSR2, SIGTERM}, 0), 10));
    CHECK(near(alarm_after({SIGUSR2, SIGTERM}, 3), 5));
    CHECK(near(alarm_after({SIGTERM, SIGUSR2}, 0), 10));
}

TEST_CASE("seconds_for_orderly_stop: returns max(5, min(left - 5, 120))") {
    CHECK(seconds_for_orderly_stop(0, 1000) == 120);
    CHECK(seconds_for_orderly_stop(1180, 1000) == 120);
    CHECK(seconds_for_orderly_stop(1100, 1000) == 95);
    CHECK(seconds_for_orderly_stop(1024, 1000) == 19);
    CHECK(seconds_for_orderly_stop(1010, 1000) == 5);
    CHECK(seconds_for_orderly_stop(900, 1000) == 120);  // the time limit was extended
}

TEST_CASE("alarm: SIGALRM ends a process that hangs during its stop") {
    const int status = in_child([] {
        struct sigaction ignore {};
        ignore.sa_handler = SIG_IGN;
        ::sigaction(SIGALRM, &ignore, nullptr);  // some libraries ignore SIGALRM
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
        catch_signals(0);
        std::raise(SIGTERM);
        ::alarm(1);  // shortens the ten seconds of the alarm
        for (;;) {
            ::pause();
        }
        return 0;
    });

    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGALRM);
}

TEST_CASE("request_orderly_stop: has the effect of SIGUSR2, including the alarm") {
    const int code = exit_code([] {
        catch_signals(0);
        request_orderly_stop();
        return stop_request() == StopRequest::orderly && ::alarm(0) > 100 ? 0 : 1;
    });

    CHECK(code == 0);
}

TEST_CASE("ignore_signals: later signals have no effect, and the alarm is off") {
    const int code = exit_code([] {
        catch_signals(0);
        std::raise(SIGUSR2);
        ignore_signals();
        for (const int signal : {SIGTERM, SIGUSR2, SIGUSR1, SIGHUP}) {
            std::raise(signal);
        }
        return stop_request() == StopRequest::orderly && ::alarm(0) == 0 ? 0 : 1;
    });

    CHECK(code == 0);
}

TEST_CASE("catch_signals: the thread has a sufficiently large alternate stack, and every handler uses it") {
    const int code = exit_code([] {
        struct sigaction foreign {};
        foreign.sa_handler = [](int) {};
        ::sigaction(SIGUSR1, &foreign, nullptr);  // a handler of a library
        catch_signals(0);
        stack_t stack{};
        ::sigaltstack(nullptr, &stack);
        int on_stack = 0;
        for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGALRM}) {
            struct sigaction action {};
            ::sigaction(signal, nullptr, &action);
            on_stack += (action.sa_flags & SA_ONSTACK) != 0 ? 1 : 0;
        }
        const bool large = stack.ss_flags == 0 && stack.ss_size >= ::getauxval(AT_MINSIGSTKSZ) + 65536;
        return large && on_stack == 5 ? 0 : 1;
    });

    CHECK(code == 0);
}

TEST_CASE("catch_signals: threads created later block all signals") {
    const int code = exit_code([] {
        catch_signals(0);
        int open = 0;
        std::thread([&open] {
            sigset_t blocked;
            ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
            for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGALRM, SIGPROF, SIGCHLD, SIGRTMIN + 5}) {
                open += ::sigismember(&blocked, signal) == 1 ? 0 : 1;
            }
        }).join();
        sigset_t blocked;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        const bool main_takes_them = ::sigismember(&blocked, SIGUSR2) == 0;
        return open == 0 && main_takes_them ? 0 : 1;
    });

    CHECK(code == 0);
}

TEST_CASE("catch_signals: a write beyond the file size limit fails with EFBIG") {
    const int code = exit_code([] {
        catch_signals(0);
        const rlimit limit{1, 1};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        std::FILE* file = std::tmpfile();
        const auto written = ::write(::fileno(file), "ab", 2) + ::write(::fileno(file), "cd", 2);
        return written == 0 && errno == EFBIG ? 0 : 1;
    });

    CHECK(code == 0);
}

TEST_CASE("release_signals: restores the default actions, and then applies a signal that arrived earlier") {
    const int after = in_child([] {
        catch_signals(0);
        release_signals();
        return std::raise(SIGTERM);
    });
    const int before = in_child([] {
        catch_signals(0);
        std::raise(SIGUSR2);
        release_signals();
        return 0;
    });

    CHECK((WIFSIGNALED(after) && WTERMSIG(after) == SIGTERM));
    CHECK((WIFSIGNALED(before) && WTERMSIG(before) == SIGUSR2));
}

TEST_CASE("watch: ends the process with code 1 after the timeout, or 75 after a stop request; unwatch() cancels it") {
    const auto hang = [] {
        ::alarm(1);  // shortens the time of the watch
        for (;;) {
            ::pause();
        }
        return 0;
    };
    CHECK(exit_code([&] {
              catch_signals(0);
              watch("expected: 2 ranks", 50);
              return hang();
          }) == 1);
    CHECK(exit_code([&] {
              catch_signals(0);
              std::raise(SIGTERM);
              watch("expected: 2 ranks", 50);
              return hang();
          }) == 75);
    CHECK(exit_code([&] {
              catch_signals(0);
              watch("expected: 2 ranks", 50);
              unwatch();
              return static_cast<int>(::alarm(0));
          }) == 0);
}

TEST_CASE("watch: neither watch() nor unwatch() delays the alarm of a stop") {
    CHECK(near(exit_code([] {
                   catch_signals(0);
                   std::raise(SIGTERM);
                   watch("expected: 2 ranks", 50);
                   unwatch();
                   return static_cast<int>(::alarm(0));
               }),
               10));
}
