#pragma once

#include "finch/cluster/environment.hpp"
#include "finch/comm/group.hpp"
#include "finch/comm/mpi.hpp"
#include "finch/config/config.hpp"
#include "finch/energy/meter.hpp"
#include "finch/evaluate/programs.hpp"
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

/// A start that ends before anything has begun, to be resumed: a signal asked to stop, or files fail.
struct StoppedAtStart {
    std::string why;  ///< on every rank
};

/// One start of a search, on all ranks, from its configuration to its end. What it consists of stands in the order in
/// which it is built; it is destroyed in the reverse one. All operations are collective over the world.
struct Run {
    /// `session` and `options` must outlive it; `launcher` starts the programs of a CommandObjective. Throws
    /// ConfigError if the input is wrong, StoppedAtStart.
    Run(comm::Session& session, const RunOptions& options, process::Launcher launcher);

    /// Leaders breed, followers evaluate with them. Returns the exit code, the same on every rank; leaves the process
    /// at once after TERM.
    [[nodiscard]] int search();

    comm::Session& session;
    const RunOptions& options;
    process::Launcher launcher;
    cluster::Slurm slurm;
    std::vector<std::string> notes{};  ///< world rank 0: on where the configuration's first guesses come from
    config::Config config;
    double seconds_to_answer;  ///< a rank that says nothing for so long is taken for dead
    Placement placement;
    comm::Group group;
    comm::Communicator leaders;  ///< null on followers
    OpenedDevice device;
    LoadedData data;                           ///< empty unless networks are trained
    std::optional<PreparedPrograms> prepared;  ///< of a CommandObjective
    std::unique_ptr<energy::Meter> meter;      ///< this rank's; null: its joules are not known
    store::RunDirectory directory;
    OpenedRun opened;
    std::unique_ptr<evaluate::Programs> programs;  ///< of a CommandObjective

    [[nodiscard]] const cluster::Place& place() const { return placement.mine(session.world_rank()); }
    [[nodiscard]] bool is_world_rank_0() const { return session.world_rank() == 0; }
    [[nodiscard]] const data::Datasets& datasets() const noexcept { return data.sets; }
    void begin(Phase phase) const { begin_phase(session, phase, seconds_to_answer); }

private:
    [[nodiscard]] int lead();
    void follow();
};

}  // namespace finch::run
