#pragma once

namespace finch {

/// A request to stop the run. `orderly` is raised by the signal USR2, by a first INT, or by the program itself.
/// `urgent` is raised by TERM or a second INT. After an urgent request, only seconds remain and a peer may be dead, so
/// no rank starts a collective operation beyond its worker or waits for a message.
enum class StopRequest { none, orderly, urgent };

}  // namespace finch
