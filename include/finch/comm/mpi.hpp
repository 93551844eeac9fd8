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
/// An owned communicator with MPI_ERRORS_RETURN set. The communicator is not freed during stack unwinding:
/// MPI_Comm_free is collective, and peers may be missing.
using Communicator = UniqueHandle<CommunicatorTraits>;

/// Takes ownership of `communicator` and sets MPI_ERRORS_RETURN. Without this error handler, MPI would abort before
/// FINCH_MPI can throw. MPI_COMM_NULL is allowed.
[[nodiscard]] Communicator own(MPI_Comm communicator);
/// Collective over `communicator`. Returns a copy; its messages never match messages of the original.
[[nodiscard]] Communicator duplicate(MPI_Comm communicator);
/// Collective over `communicator`. Returns a communicator of the ranks with an equal `color`, in the same order.
[[nodiscard]] Communicator split(MPI_Comm communicator, int color);

/// The scope of MPI_Init_thread (FUNNELED) and MPI_Finalize. If the node has more ranks than usable cores
/// (cluster::node_is_crowded), the constructor sets OMPI_MCA_mpi_yield_when_idle=1 before MPI_Init_thread, unless the
/// user has set the variable. With this variable, long waits sleep. If an exception unwinds a Session, the destructor
/// calls MPI_Abort instead of MPI_Finalize, so the exception must be printed inside the Session's scope.
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
    int exceptions_ = 0;  ///< uncaught exceptions at construction
};

[[nodiscard]] int rank_of(MPI_Comm communicator);
[[nodiscard]] int size_of(MPI_Comm communicator);

/// The maximum size of a message in bytes. MPI counts in int, and MPI's buffers should stay small compared with the
/// data.
inline constexpr std::size_t most_message_bytes = std::size_t{1} << 28;

// The following functions wait for other ranks at most until the deadline of the phase, if there is one (phase.hpp).

/// Collective over `communicator`. Copies the bytes of rank `root` to every rank, in messages of at most `most` bytes.
/// `bytes` must have the same size on every rank.
void broadcast_bytes(MPI_Comm communicator, int root, std::span<std::byte> bytes,
                     std::size_t most = most_message_bytes);
/// Collective over `communicator`. Returns the texts of all ranks, by rank. Uses messages of at most `most` bytes.
[[nodiscard]] std::vector<std::string> gather_all(MPI_Comm communicator, const std::string& mine,
                                                  std::size_t most = most_message_bytes);
/// Collective over `communicator`. Returns once all ranks have called wait_for_all(), or after `seconds`. Only ranks
/// that are about to exit may call wait_for_all().
void wait_for_all(MPI_Comm communicator, double seconds);
/// Collective over `communicator`. Copies the bytes of rank 0 to every rank.
void broadcast(MPI_Comm communicator, Bytes& bytes);
/// Transfer at most most_message_bytes bytes from one rank to another. Both functions block.
void send_bytes(MPI_Comm communicator, int to, std::span<const std::byte> bytes);
[[nodiscard]] Bytes receive_bytes(MPI_Comm communicator, int from);
/// Collective over `communicator`. Returns the text of rank 0 on every rank.
[[nodiscard]] std::string broadcast(MPI_Comm communicator, const std::string& text);

}  // namespace finch::comm
