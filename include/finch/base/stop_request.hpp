#pragma once

namespace finch {

/// A stop request from outside. orderly: USR2, INT once, or by the program itself. urgent: TERM, or INT twice: seconds
/// are left and a peer may be dead, so no rank enters a collective beyond the worker, or awaits a message.
enum class StopRequest { none, orderly, urgent };

}  // namespace finch
