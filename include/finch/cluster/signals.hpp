#pragma once

namespace finch::cluster {

/// What a signal asked for. `urgent` is TERM, or INT twice: seconds are left, a peer may be dead, so nobody enters a
/// collective beyond the worker. `orderly` is USR2, INT once, or request_orderly_stop().
enum class StopRequest { none, orderly, urgent };

/// Catches USR2, TERM and INT; the handler only sets a flag and arms the alarm. TERM arms alarm(10), USR2 and INT arm
/// alarm(max(5, min(seconds left − 15, 120))), with SIGALRM at its default action: a stop that hangs ends itself. A
/// repeated signal never puts the alarm off. `end_time`: Unix seconds, 0 where there is none. Unblocks these signals.
/// Called once, after MPI_Init.
void catch_signals(double end_time);

/// The strongest request so far, in this process.
[[nodiscard]] StopRequest stop_request() noexcept;

/// Does what USR2 does, alarm included: for a deadline that the program sees by itself.
void request_orderly_stop() noexcept;

/// Ignores USR2, TERM and INT from now on and disarms the alarm: the files are closed and only MPI_Finalize is left.
void ignore_signals() noexcept;

/// Seconds from an orderly request to the alarm: max(5, min(end_time − now − 15, 120)); 120 where `end_time` is 0.
[[nodiscard]] unsigned seconds_for_orderly_stop(long long end_time, long long now) noexcept;

}  // namespace finch::cluster
