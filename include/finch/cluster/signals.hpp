#pragma once

#include "finch/base/stop_request.hpp"

#include <string>

namespace finch::cluster {

/// Catches USR2, USR1, HUP, INT and TERM; the handler only sets a flag and arms the alarm. TERM arms alarm(10), the
/// others arm alarm(max(5, min(seconds left − 5, 120))): a stop that hangs ends itself, by SIGALRM. A repeated signal
/// never puts the alarm off. HUP stays ignored if the process was started so (nohup), and USR1 stays the signal of a
/// library that has a handler for it. `end_time`: Unix seconds, 0 if there is none or it is not known yet. Ignores
/// SIGXFSZ, so that a write beyond the limit fails with EFBIG.
///
/// The calling thread takes all signals, on an alternate stack: oneDNN's generated GEMM kernels use the stack pointer
/// as a data pointer, so a handler on the thread's own stack would write into the tensors. Every other thread blocks
/// them (see pthread_create in signals.cpp). Handlers that libraries have installed are moved to the alternate stack
/// too.
///
/// First in main(), before there is a thread; once more after MPI_Init, and whenever a library may have installed
/// handlers.
void catch_signals(double end_time = 0);

/// Back to the default actions, for verbs that cannot be resumed. A signal that came meanwhile takes effect now.
void release_signals();

/// Installs `handler` as catch_signals() does: on the alternate stack of the thread that called it.
void set_handler(int signal, void (*handler)(int));

/// Whether catch_signals() makes a request of it: a program that dies of one may have got it together with Finch.
[[nodiscard]] bool is_stop_signal(int signal) noexcept;

/// The strongest request so far, in this process.
[[nodiscard]] StopRequest stop_request() noexcept;

/// Does what USR2 does, alarm included: for a deadline that the program sees by itself.
void request_orderly_stop() noexcept;

/// Does what the signal behind `request` does, alarm included: for a request that reached another rank.
void request_stop(StopRequest request) noexcept;

/// Ends the process with exit code 1 and `text` on stderr, unless watch() or unwatch() is called within `seconds`: for
/// calls that have no deadline of their own. If a stop was asked for before unwatch(), nothing has begun that could be
/// lost, and the exit code is 75, whichever alarm ends the process.
void watch(const std::string& text, double seconds);
void unwatch() noexcept;

/// Seconds until the alarm that ends a stop; 0 if none was asked for.
[[nodiscard]] double seconds_left_to_stop() noexcept;

/// Ignores USR2, USR1, HUP, INT and TERM from now on and disarms the alarm: the files are closed and only MPI_Finalize
/// is left.
void ignore_signals() noexcept;

/// Seconds from an orderly request to the alarm: max(5, min(end_time − now − 5, 120)); 120 if `end_time` is 0.
[[nodiscard]] unsigned seconds_for_orderly_stop(long long end_time, long long now) noexcept;

}  // namespace finch::cluster
