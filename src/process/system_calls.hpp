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

/// All with O_CLOEXEC. Throw ApiError.
[[nodiscard]] Pair make_pipe();     ///< first is read from, second written to
[[nodiscard]] Pair make_sockets();  ///< of SOCK_SEQPACKET
void set_nonblocking(const FileDescriptor& descriptor);

constexpr double never = std::numeric_limits<double>::infinity();  ///< as a time

/// ppoll(2) for `seconds`, for ever if they are negative. Returns how many are ready, negative with errno if it failed.
int poll_for(std::span<pollfd> descriptors, double seconds) noexcept;

/// Takes what a signalfd has.
void drain_signals(const FileDescriptor& signals) noexcept;

/// Detaches the calling process, just forked with all signals blocked: signals as by default, no
/// descriptor but `kept`, nothing on 0, 1 and 2, the root folder. Returns a signalfd for `signals`.
[[nodiscard]] FileDescriptor detach(FileDescriptor& kept, std::span<const int> signals);

}  // namespace finch::process
