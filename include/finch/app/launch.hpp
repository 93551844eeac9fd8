#pragma once

#include "finch/base/run_state.hpp"
#include "finch/comm/mpi.hpp"

#include <functional>
#include <string>

/// Runs a verb (a subcommand of finch) and converts its exceptions to an error message and an exit code.
namespace finch::app {

/// Runs a verb that needs no MPI. Returns the exit code of the verb, or exit_fault if standard output could not be
/// written.
[[nodiscard]] int alone(const std::function<int()>& verb);

/// Runs a verb like alone(), but only on the first rank if mpirun or srun started several. Other ranks return
/// exit_done.
[[nodiscard]] int on_first_rank(const std::function<int()>& verb);

/// Prints `problem` on the first rank of the launcher. Returns the exit code: `code` on the first rank, and exit_done
/// on the others, because mpirun ends the first rank, perhaps before it has printed, as soon as another one fails.
[[nodiscard]] int refuse(const std::string& problem, int code = exit_input);

/// The reaction if the launcher started processes that MPI does not connect. `refuse`: prints an error and ends.
/// `tell`: runs the verb, which reports the problem itself.
enum class BadLaunch { refuse, tell };

/// Runs a verb on all ranks. If the verb throws a ConfigError or a run::SharedError, it must do so on every rank; rank
/// 0 prints the message. Any other exception may occur on a single rank, which then ends all ranks by MPI_Abort. Rank 0
/// returns the exit code, the other ranks return 0.
[[nodiscard]] int on_all_ranks(int argc, char** argv, const std::function<int(comm::Session&)>& verb,
                               BadLaunch bad_launch);

}  // namespace finch::app
