#pragma once

#include <string>

namespace finch::cluster {

/// What a signal (or the deadline) asked for. `urgent` is TERM: seconds are left, a peer may be dead, so nobody enters
/// a collective beyond the worker. `orderly` is USR2, INT once, or the deadline.
enum class StopRequest { none, orderly, urgent };

/// Catches USR2, TERM and INT; the handler only sets a flag. TERM arms alarm(10), USR2 arms
/// alarm(max(5, min(seconds left − 15, 120))), with SIGALRM at its default action: a stop that hangs ends itself.
/// `end_time`: Unix seconds, 0 where there is none.
void catch_signals(double end_time);

/// The strongest request so far, in this process.
[[nodiscard]] StopRequest stop_request() noexcept;

/// Ignores USR2 and TERM from now on and disarms the alarm: the files are closed and only MPI_Finalize is left.
void ignore_signals() noexcept;

}  // namespace finch::cluster
