#include "finch/cluster/signals.hpp"

#include "finch/base/error.hpp"
#include "finch/base/run_state.hpp"
#include "finch/cluster/end_notes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <span>
#include <string_view>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

// Handlers only call async-signal-safe functions (signal-safety(7)): alarm, write, _exit, time, clock_gettime,
// lock-free atomics.

namespace finch::cluster {
namespace {

constexpr unsigned urgent_seconds = 10;
constexpr unsigned orderly_seconds_least = 5;
constexpr unsigned orderly_seconds_most = 120;
constexpr long long reserve_seconds = 5;
constexpr std::size_t handler_bytes = std::size_t{64} << 10U;
constexpr std::array stop_signals{SIGUSR2, SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGXCPU};
constexpr std::array synchronous_signals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};

/// The data that handlers read and write. Deadlines are seconds of the monotonic clock; 0: none.
struct State {
    std::atomic<int> request{static_cast<int>(StopRequest::none)};
    std::atomic<int> taken{0};  ///< the last stop signal
    std::atomic<long long> end_time{0};
    std::atomic<long long> stop_deadline{0};
    std::atomic<long long> watch_deadline{0};
    std::atomic<bool> starting{false};  ///< from the first watch() to unwatch()
    std::array<char, 1024> watch_text{};
    std::atomic<std::size_t> watch_length{0};
};
State state;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<long long>::is_always_lock_free &&
              std::atomic<std::size_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

long long monotonic_seconds() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/// Sets one alarm for the earlier of the two deadlines.
void arm_alarm() noexcept {
    const long long stop = state.stop_deadline.load();
    const long long watched = state.watch_deadline.load();
    const long long first = stop == 0 || watched == 0 ? std::max(stop, watched) : std::min(stop, watched);
    ::alarm(first == 0 ? 0U : static_cast<unsigned>(std::max(1LL, first - monotonic_seconds())));
}

void raise_request(StopRequest request) noexcept {
    const int wanted = static_cast<int>(request);
    int before = state.request.load();
    while (before < wanted && !state.request.compare_exchange_weak(before, wanted)) {
    }
    if (before >= wanted) {
        return;
    }
    const unsigned seconds = request == StopRequest::urgent
                                 ? urgent_seconds
                                 : seconds_for_orderly_stop(state.end_time.load(), ::time(nullptr));
    const long long deadline = monotonic_seconds() + seconds;
    const long long earlier = state.stop_deadline.load();
    state.stop_deadline = earlier == 0 ? deadline : std::min(earlier, deadline);
    arm_alarm();
}

extern "C" void finch_on_stop_signal(int signal) {
    note_end(ExitCause::external);
    const bool again = stop_request() != StopRequest::none;
    if (signal == SIGXCPU && !again) {
        constexpr std::string_view text =
            "finch: the limit of CPU seconds (ulimit -t) is nearly used up: finch saves its work and stops\n";
        (void)!::write(STDERR_FILENO, text.data(), text.size());
    }
    const bool urgent = signal == SIGTERM || (signal == SIGINT && again);
    state.taken = signal;
    raise_request(urgent ? StopRequest::urgent : StopRequest::orderly);
}

extern "C" void finch_on_alarm(int signal) {
    if (state.starting.load() && stop_request() != StopRequest::none) {
        ::_exit(exit_stopped);
    }
    if (const std::size_t length = state.watch_length.load(); length > 0 && stop_request() == StopRequest::none) {
        (void)!::write(STDERR_FILENO, state.watch_text.data(), length);
        ::_exit(exit_fault);
    }
    ::signal(signal, SIG_DFL);
    ::raise(signal);  // takes effect when this handler returns
}

struct sigaction action_of(int signal) noexcept {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    return action;
}

/// True if the process was started with HUP ignored, as by nohup. Must be called before any library installs a handler.
bool ignores_hangup() noexcept {
    static const bool ignored = action_of(SIGHUP).sa_handler == SIG_IGN;
    return ignored;
}

/// False for SIGHUP if it was ignored at process start (nohup). False for SIGUSR1 if a library handles it, like early
/// versions of NCCL.
bool is_caught_here(int signal) noexcept {
    const auto handler = action_of(signal).sa_handler;
    return !(signal == SIGHUP && ignores_hangup()) &&
           !(signal == SIGUSR1 && handler != SIG_DFL && handler != finch_on_stop_signal);
}

sigset_t set_of(std::span<const int> signals) noexcept {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : signals) {
        ::sigaddset(&set, signal);
    }
    return set;
}

/// Installs an alternate signal stack for the calling thread, if the thread has none of sufficient size. The stack is
/// never freed, because handlers may run until the process ends. With AMX a signal frame is larger than SIGSTKSZ. The
/// kernel reports the size of a frame, and refuses the use of AMX if the alternate stack is too small.
void make_alternate_stack() {
    const std::size_t bytes = std::max<std::size_t>(::getauxval(AT_MINSIGSTKSZ), MINSIGSTKSZ) + handler_bytes;
    stack_t present{};
    if (::sigaltstack(nullptr, &present) == 0 && (present.ss_flags & SS_DISABLE) == 0 && present.ss_size >= bytes) {
        return;
    }
    stack_t stack{};
    stack.ss_size = bytes;
    stack.ss_sp = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack.ss_sp == MAP_FAILED) {
        throw_errno("mmap");
    }
    if (::sigaltstack(&stack, nullptr) != 0) {
        throw_errno("sigaltstack");
    }
}

/// Moves the handlers of libraries (Open MPI, profilers) to the alternate stack: this thread runs them, too.
void move_handlers_to_alternate_stack() {
    for (int signal = 1; signal <= SIGRTMAX; ++signal) {
        struct sigaction action = action_of(signal);
        if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN && (action.sa_flags & SA_ONSTACK) == 0) {
            action.sa_flags |= SA_ONSTACK;
            ::sigaction(signal, &action, nullptr);
        }
    }
}

}  // namespace

unsigned seconds_for_orderly_stop(long long end_time, long long now) noexcept {
    if (end_time < now) {  // it is not known, or the time limit was extended
        return orderly_seconds_most;
    }
    return static_cast<unsigned>(
        std::clamp<long long>(end_time - now - reserve_seconds, orderly_seconds_least, orderly_seconds_most));
}

void set_handler(int signal, void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    // SA_RESTART: a write(2) to a journal continues after the handler.
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    action.sa_mask = set_of(stop_signals);  // a handler does not interrupt another
    if (::sigaction(signal, &action, nullptr) != 0) {
        throw_errno("sigaction");
    }
}

void catch_signals(double end_time) {
    state.end_time = end_time > 0 ? std::llround(end_time) : 0;
    make_alternate_stack();
    move_handlers_to_alternate_stack();
    set_handler(SIGALRM, finch_on_alarm);
    for (const int signal : stop_signals) {
        if (is_caught_here(signal)) {
            set_handler(signal, finch_on_stop_signal);
        }
    }
    if (ignores_hangup()) {
        ::signal(SIGHUP, SIG_IGN);  // UCX may have installed a handler
    }
    ::signal(SIGXFSZ, SIG_IGN);
    sigset_t ours = set_of(stop_signals);
    ::sigaddset(&ours, SIGALRM);
    if (::pthread_sigmask(SIG_UNBLOCK, &ours, nullptr) != 0) {
        throw_errno("pthread_sigmask");
    }
}

void reserve_cpu_seconds(int cpus) noexcept {
    constexpr rlim_t seconds_to_stop = 20;
    struct rlimit limit {};
    if (::getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_max != RLIM_INFINITY) {
        const rlim_t reserve = std::min(limit.rlim_max / 4, seconds_to_stop * static_cast<rlim_t>(cpus));
        limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max - reserve);
        ::setrlimit(RLIMIT_CPU, &limit);
    }
}

void release_signals() {
    ::alarm(0);
    for (const int signal : stop_signals) {
        if (is_caught_here(signal)) {
            ::signal(signal, SIG_DFL);
        }
    }
    ::signal(SIGALRM, SIG_DFL);
    if (const int signal = state.taken.load(); signal != 0) {
        ::raise(signal);
    }
}

bool is_stop_signal(int signal) noexcept {
    return std::find(stop_signals.begin(), stop_signals.end(), signal) != stop_signals.end();
}

StopRequest stop_request() noexcept {
    return static_cast<StopRequest>(state.request.load());
}

void request_orderly_stop() noexcept {
    raise_request(StopRequest::orderly);
}

void request_stop(StopRequest request) noexcept {
    if (request != StopRequest::none) {
        raise_request(request);
    }
}

void watch(const std::string& text, double seconds) {
    state.watch_length = 0;  // a handler that runs now must not find an incomplete text
    const std::size_t length = std::min(text.size(), state.watch_text.size() - 1);
    std::copy_n(text.begin(), length, state.watch_text.begin());
    state.watch_text[length] = '\n';
    state.watch_length = length + 1;
    state.starting = true;
    state.watch_deadline = monotonic_seconds() + std::max(1LL, std::llround(std::ceil(seconds)));
    arm_alarm();
}

void unwatch() noexcept {
    state.starting = false;
    state.watch_length = 0;
    state.watch_deadline = 0;
    arm_alarm();
}

double seconds_left_to_stop() noexcept {
    const long long deadline = state.stop_deadline.load();
    return deadline == 0 ? 0 : static_cast<double>(std::max(0LL, deadline - monotonic_seconds()));
}

void ignore_signals() noexcept {
    for (const int signal : stop_signals) {
        ::signal(signal, SIG_IGN);
    }
    state.watch_deadline = 0;
    state.stop_deadline = 0;
    ::alarm(0);
}

}  // namespace finch::cluster

/// Replaces pthread_create of the C library. Every new thread (of OpenMP, MPI, CUDA) starts with all asynchronous
/// signals blocked. Handlers therefore run on the main thread only, which has the alternate stack. No single place in
/// the program could block the signals, because OpenMP creates and ends threads whenever the size of a team changes.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                              void* argument) noexcept {
    using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
    sigset_t blocked;
    sigset_t before;
    ::sigfillset(&blocked);
    for (const int signal : finch::cluster::synchronous_signals) {
        ::sigdelset(&blocked, signal);
    }
    ::pthread_sigmask(SIG_SETMASK, &blocked, &before);
    const int code = create(thread, attributes, body, argument);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return code;
}
