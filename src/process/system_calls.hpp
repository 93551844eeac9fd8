#pragma once

#include "finch/base/handle.hpp"

#include <limits>
#include <poll.h>
#include <span>

namespace finch::process {

struct Pair {
    FileDescriptor first;
    FileDescriptor second;
};

/// Make descriptors with O_CLOEXEC. Throw ApiError.
[[nodiscard]] Pair make_pipe();     ///< first: read end, second: write end
[[nodiscard]] Pair make_sockets();  ///< of SOCK_SEQPACKET
void set_nonblocking(const FileDescriptor& descriptor);

constexpr double never = std::numeric_limits<double>::infinity();  ///< a time that never comes

/// Calls ppoll(2) for `seconds`, without a limit if they are negative. Returns how many descriptors are ready; on
/// failure, returns a negative number and sets errno.
int poll_for(std::span<pollfd> descriptors, double seconds) noexcept;

/// Reads and discards all signals of a signalfd.
void drain_signals(const FileDescriptor& signals) noexcept;

/// Detaches the calling process, just forked with all signals blocked. Resets signal handlers, closes all descriptors
/// except `kept`, connects descriptors 0, 1 and 2 to /dev/null, and changes to the root folder. Returns a signalfd for
/// `signals`.
[[nodiscard]] FileDescriptor detach(FileDescriptor& kept, std::span<const int> signals);

}  // namespace finch::process
