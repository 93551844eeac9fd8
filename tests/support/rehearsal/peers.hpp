#pragma once

#include <string>

namespace finch::rehearsal {

/// The behaviour of the other ranks of a worker, as simulated by the NCCL stand-in.
enum class Peers {
    well,         ///< the other ranks take part normally
    never_come,   ///< the creation of a communicator never completes
    get_stuck,    ///< all-reduces never complete
    report_error  ///< ncclCommGetAsyncError reports an error after an all-reduce
};
void set_peers(Peers peers);
/// Return the number of communicators that ended by ncclCommAbort() and ncclCommDestroy(). Both NCCL calls block while
/// a graph contains all-reduces of the communicator.
[[nodiscard]] int communicators_aborted();
[[nodiscard]] int communicators_destroyed();
/// Returns the value of NCCL_NVLS_ENABLE at the creation of the last communicator.
[[nodiscard]] std::string nvls_asked_for();

}  // namespace finch::rehearsal
