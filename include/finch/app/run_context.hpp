#pragma once

#include "finch/app/evolve.hpp"
#include "finch/app/startup.hpp"
#include "finch/backend/device.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/comm/group.hpp"
#include "finch/comm/mpi.hpp"
#include "finch/config/config.hpp"
#include "finch/energy/meter.hpp"
#include "finch/evaluate/programs.hpp"
#include "finch/store/run_directory.hpp"

namespace finch::app {

/// Everything that stands when a search begins. Built in order, destroyed in reverse.
struct RunContext {
    comm::Session& session;
    const config::Config& config;
    const RunOptions& options;
    cluster::Slurm slurm;
    Placement placement;
    const comm::Group& group;
    const comm::Communicator& leaders;  ///< null on followers
    const store::RunDirectory& directory;
    const data::Datasets& datasets;
    backend::Device& device;
    cluster::AllReduceKind communicator;
    evaluate::Programs* programs;  ///< null where the objective is no program
    energy::Meter* meter;          ///< this rank's; null where nothing tells its joules

    [[nodiscard]] const cluster::Place& place() const { return placement.mine(session.world_rank()); }
};

}  // namespace finch::app
