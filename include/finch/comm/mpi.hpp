#pragma once

#include "finch/base/bytes.hpp"
#include "finch/base/error.hpp"
#include "finch/base/handle.hpp"

#include <cstddef>
#include <mpi.h>
#include <source_location>
#include <span>
#include <string>
#include <vector>

namespace finch::comm {

/// Throws ApiError with the call's text unless `code` is MPI_SUCCESS.
void check(int code, const char* call, std::source_location where);
#define FINCH_MPI(call) ::finch::comm::check((call), #call, std::source_location::current())

struct CommunicatorTraits {
    using type = MPI_Comm;
    static type null() noexcept { return MPI_COMM_NULL; }
    static void destroy(type communicator) noexcept;
};
/// Owns a communicator, which has MPI_ERRORS_RETURN set. Not freed while unwinding: the peers may not come.
using Communicator = UniqueHandle<CommunicatorTraits>;

/// Takes `communicator` over and sets MPI_ERRORS_RETURN, without which the checks are dead. MPI_COMM_NULL is allowed.
[[nodiscard]] Communicator own(MPI_Comm communicator);
/// Collective over `communicator`. A copy, whose messages are apart from those of the original.
[[nodiscard]] Communicator duplicate(MPI_Comm communicator);
/// Collective over `communicator`. The ranks with an equal `color`, in their order.
[[nodiscard]] Communicator split(MPI_Comm communicator, int color);

/// MPI_Init_thread (FUNNELED) and MPI_Finalize. Sets OMPI_MCA_mpi_yield_when_idle=1 before where the node has more
/// ranks than usable cores (cluster::node_is_crowded) and the user has not set it; with it long waits sleep. While
/// unwinding from an exception it aborts rather than finalizes, so what is to be printed of the exception is printed
/// inside of the Session's scope.
class Session {
public:
    Session(int& argc, char**& argv);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    [[nodiscard]] int world_rank() const noexcept { return rank_; }
    [[nodiscard]] int world_size() const noexcept { return size_; }

private:
    int rank_ = 0;
    int size_ = 1;
    int exceptions_ = 0;  ///< in flight at the start
};

[[nodiscard]] int rank_of(MPI_Comm communicator);
[[nodiscard]] int size_of(MPI_Comm communicator);

/// The largest message: MPI counts in int, and its buffers should stay small beside what they carry.
inline constexpr std::size_t most_message_bytes = std::size_t{1} << 28;

// What follows waits for other ranks within the deadline of a phase, where there is one (phase.hpp).

/// Collective over `communicator`. The bytes of rank `root`, on every rank, which have room for as many; in messages of
/// at most `most` bytes.
void broadcast_bytes(MPI_Comm communicator, int root, std::span<std::byte> bytes,
                     std::size_t most = most_message_bytes);
/// Collective over `communicator`. Every rank's text, by rank; in messages of at most `most` bytes.
[[nodiscard]] std::vector<std::string> gather_all(MPI_Comm communicator, const std::string& mine,
                                                  std::size_t most = most_message_bytes);
/// Collective over `communicator`. Returns when all ranks are here, or after `seconds`: for ranks that leave for good.
void wait_for_all(MPI_Comm communicator, double seconds);
/// Collective over `communicator`. The bytes of rank 0, on every rank.
void broadcast(MPI_Comm communicator, Bytes& bytes);
/// Bytes from one rank to another, at most most_message_bytes of them. Both wait.
void send_bytes(MPI_Comm communicator, int to, std::span<const std::byte> bytes);
[[nodiscard]] Bytes receive_bytes(MPI_Comm communicator, int from);
/// Collective over `communicator`. The text of rank 0, on every rank.
[[nodiscard]] std::string broadcast(MPI_Comm communicator, const std::string& text);

}  // namespace finch::comm
