#pragma once

#include "finch/base/stop_request.hpp"

#include <string>

namespace finch::cluster {

/// Catches the signals USR2, USR1, HUP, INT, TERM and XCPU. The handler only sets a flag and arms an alarm: alarm(10)
/// for TERM, alarm(max(5, min(seconds left − 5, 120))) for the other signals. If a stop hangs, SIGALRM ends the
/// process. A repeated signal never postpones the alarm. HUP stays ignored if it was ignored at process start (nohup).
/// USR1 keeps the handler of a library, if one is installed. `end_time`: the end of the job in Unix seconds; 0 if there
/// is none or it is not known yet. Ignores SIGXFSZ, so a write beyond the file size limit fails with EFBIG.
///
/// The calling thread handles all signals, on an alternate stack. Generated GEMM kernels of oneDNN use the stack
/// pointer as a data pointer, so a handler on the thread's own stack would overwrite tensors. Every other thread blocks
/// these signals (see pthread_create in signals.cpp). Handlers that libraries have installed are also moved to the
/// alternate stack.
///
/// Must be called first in main(), before any thread exists. Must be called again after MPI_Init, and after any call
/// that may install handlers of a library.
void catch_signals(double end_time = 0);

/// Lowers the soft limit of CPU seconds (ulimit -t), so that the kernel sends XCPU early enough for an orderly stop on
/// `cpus` CPUs. At the hard limit, it kills the process.
void reserve_cpu_seconds(int cpus) noexcept;

/// Restores the default actions of all stop signals, for verbs that cannot be resumed. A signal that arrived before
/// this call takes effect now.
void release_signals();

/// Installs `handler` like catch_signals(): it runs on the alternate stack of the calling thread.
void set_handler(int signal, void (*handler)(int));

/// True if catch_signals() converts this signal to a stop request. If an evaluated program dies of this signal, Finch
/// may have received the same signal.
[[nodiscard]] bool is_stop_signal(int signal) noexcept;

/// Returns the strongest request so far in this process.
[[nodiscard]] StopRequest stop_request() noexcept;

/// Has the same effect as the signal USR2, including the alarm. Used for deadlines that the program detects itself.
void request_orderly_stop() noexcept;

/// Has the same effect as the signal for `request`, including the alarm. Used for a request that another rank received.
void request_stop(StopRequest request) noexcept;

/// Starts a watchdog for calls without a deadline of their own. Ends the process with exit code 1 and `text` on stderr
/// if neither watch() nor unwatch() is called within `seconds`. If a stop is requested before unwatch(), any alarm ends
/// the process with exit code 75: no work has begun yet that could be lost.
void watch(const std::string& text, double seconds);
void unwatch() noexcept;

/// Returns the seconds until the alarm that ends a stop; 0 if no stop was requested.
[[nodiscard]] double seconds_left_to_stop() noexcept;

/// Ignores the signals USR2, USR1, HUP, INT and TERM and disarms the alarm. Used at the end of the process, when the
/// files are closed and only MPI_Finalize is left.
void ignore_signals() noexcept;

/// Returns the seconds from an orderly request to the alarm: max(5, min(end_time − now − 5, 120)); 120 if `end_time` is
/// before `now`.
[[nodiscard]] unsigned seconds_for_orderly_stop(long long end_time, long long now) noexcept;

}  // namespace finch::cluster
