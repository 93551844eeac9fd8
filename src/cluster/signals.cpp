#include "finch/cluster/signals.hpp"

#include "finch/base/error.hpp"
#include "finch/cluster/end_notes.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <ctime>
#include <unistd.h>

// Everything that the handler calls is async-signal-safe (signal-safety(7)): alarm, time, lock-free atomics.

namespace finch::cluster {
namespace {

constexpr unsigned urgent_seconds = 10;
constexpr unsigned orderly_seconds_least = 5;
constexpr unsigned orderly_seconds_most = 120;
constexpr long long reserve_seconds = 15;

std::atomic<int> request_so_far{static_cast<int>(StopRequest::none)};
std::atomic<long long> end_of_time{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<long long>::is_always_lock_free);

void arm_alarm(unsigned seconds) noexcept {
    const unsigned left = ::alarm(seconds);
    if (left != 0 && left < seconds) {
        ::alarm(left);
    }
}

void raise_request(StopRequest request) noexcept {
    const int wanted = static_cast<int>(request);
    int before = request_so_far.load();
    while (before < wanted && !request_so_far.compare_exchange_weak(before, wanted)) {
    }
    if (before >= wanted) {
        return;
    }
    arm_alarm(request == StopRequest::urgent ? urgent_seconds
                                             : seconds_for_orderly_stop(end_of_time.load(), ::time(nullptr)));
}

extern "C" void finch_on_stop_signal(int signal) {
    note_end(EndKind::excused);
    const bool again = stop_request() != StopRequest::none;
    const bool urgent = signal == SIGTERM || (signal == SIGINT && again);
    raise_request(urgent ? StopRequest::urgent : StopRequest::orderly);
}

void set_action(int signal, void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    // A handler does not interrupt another, and a write(2) to a journal goes on after it.
    action.sa_flags = SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    for (const int other : {SIGUSR2, SIGTERM, SIGINT}) {
        ::sigaddset(&action.sa_mask, other);
    }
    if (::sigaction(signal, &action, nullptr) != 0) {
        throw_errno("sigaction");
    }
}

}  // namespace

unsigned seconds_for_orderly_stop(long long end_time, long long now) noexcept {
    if (end_time <= 0) {
        return orderly_seconds_most;
    }
    return static_cast<unsigned>(
        std::clamp<long long>(end_time - now - reserve_seconds, orderly_seconds_least, orderly_seconds_most));
}

void catch_signals(double end_time) {
    end_of_time = end_time > 0 ? std::llround(end_time) : 0;
    set_action(SIGALRM, SIG_DFL);
    for (const int signal : {SIGUSR2, SIGTERM, SIGINT}) {
        set_action(signal, finch_on_stop_signal);
    }
    sigset_t ours;
    ::sigemptyset(&ours);
    for (const int signal : {SIGUSR2, SIGTERM, SIGINT, SIGALRM}) {
        ::sigaddset(&ours, signal);
    }
    if (::pthread_sigmask(SIG_UNBLOCK, &ours, nullptr) != 0) {
        throw_errno("pthread_sigmask");
    }
}

StopRequest stop_request() noexcept {
    return static_cast<StopRequest>(request_so_far.load());
}

void request_orderly_stop() noexcept {
    raise_request(StopRequest::orderly);
}

void ignore_signals() noexcept {
    for (const int signal : {SIGUSR2, SIGTERM, SIGINT}) {
        ::signal(signal, SIG_IGN);
    }
    ::alarm(0);
}

}  // namespace finch::cluster
