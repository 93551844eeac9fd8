#pragma once

#include <string>

namespace finch::rehearsal {

/// What the stand-in of NCCL makes of a worker's other ranks.
enum class Peers {
    well,         ///< they come
    never_come,   ///< a communicator is never made
    get_stuck,    ///< sums never end
    report_error  ///< an error shows when it is asked for
};
void set_peers(Peers peers);
/// Communicators that ended by ncclCommAbort, and by ncclCommDestroy. Neither ends while a graph holds sums of it.
[[nodiscard]] int communicators_aborted();
[[nodiscard]] int communicators_destroyed();
/// NCCL_NVLS_ENABLE as it was when the last communicator was made.
[[nodiscard]] std::string nvls_asked_for();

}  // namespace finch::rehearsal
