#pragma once

#include "finch/cluster/environment.hpp"
#include "finch/comm/group.hpp"
#include "finch/comm/mpi.hpp"
#include "finch/config/config.hpp"
#include "finch/energy/meter.hpp"
#include "finch/process/launcher.hpp"
#include "finch/run/devices.hpp"
#include "finch/run/evolve.hpp"
#include "finch/run/load_data.hpp"
#include "finch/run/opening.hpp"
#include "finch/run/programs.hpp"
#include "finch/run/startup.hpp"
#include "finch/store/run_directory.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace finch::run {

/// The exception for a start that ends before its search and is to be resumed: a signal requested a stop, or files
/// failed.
struct StoppedAtStart {
    std::string why;  ///< the reason, on every rank
};

/// One start of a search on all ranks, from its configuration to its end. The members are declared in the order of
/// construction and destroyed in reverse order. All operations are collective over the world.
struct Run {
    /// Keeps references to `session` and `options`, which must outlive this object. `launcher` starts the programs of a
    /// CommandObjective. Throws ConfigError if the input is wrong, and StoppedAtStart.
    Run(comm::Session& session, const RunOptions& options, process::Launcher launcher);

    /// Runs the search: leaders breed individuals, and followers help their leader to evaluate them. Returns the exit
    /// code, the same on every rank. After SIGTERM, ends the process without returning.
    [[nodiscard]] int search();

    comm::Session& session;
    const RunOptions& options;
    process::Launcher launcher;
    cluster::Slurm slurm;
    std::vector<std::string> notes{};  ///< world rank 0: the origin of the first guesses
    config::Config config;
    double seconds_to_answer;  ///< after this time without an answer, a rank counts as dead
    Placement placement;
    comm::Group group;
    comm::Communicator leaders;  ///< null on followers
    OpenedDevice device;
    LoadedData data;                           ///< empty if no networks are trained
    std::optional<PreparedPrograms> prepared;  ///< only with a CommandObjective
    std::unique_ptr<energy::Meter> meter;      ///< of this rank; null: its joules are unknown
    store::RunDirectory directory;
    OpenedRun opened;

    [[nodiscard]] const cluster::Place& place() const { return placement.mine(session.world_rank()); }
    [[nodiscard]] bool is_world_rank_0() const { return session.world_rank() == 0; }
    [[nodiscard]] const data::Datasets& datasets() const noexcept { return data.sets; }
    void begin(Phase phase) const { begin_phase(session, phase, seconds_to_answer); }

private:
    [[nodiscard]] int lead();
    void follow();
};

}  // namespace finch::run
