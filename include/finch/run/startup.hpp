#pragma once

#include "finch/cluster/device_map.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/cluster/layout.hpp"
#include "finch/comm/mpi.hpp"
#include "finch/config/config.hpp"
#include "finch/data/dataset.hpp"

#include <string>
#include <vector>

namespace finch::run {

/// How long a start waits in MPI_Init for ranks that never come: FINCH_START_SECONDS, 120 if that is not set.
[[nodiscard]] double start_seconds();

/// Fault injection for the tests. If FINCH_TEST_HANG is "RANK:PHASE:SECONDS" and `phase` begins with PHASE, that rank
/// of mpirun says so and sleeps forever, and the phase's deadline is SECONDS on the others. Returns the deadline:
/// `seconds` otherwise.
double hang_for_test(const std::string& phase, double seconds);

/// Collective over the world. The first thing after MPI_Init: all ranks are there, or Error names those that are not.
void barrier_with_deadline(const comm::Session& session);

/// Phases of a start and of an end. startup.cpp has the words and the deadline of each.
enum class Phase {
    roll_call,
    configuration,
    groups,
    devices_and_data,
    run_directory,
    handing_out_run,
    recording_start,
    second_roll_call,
    handing_out_results,
    end_of_search,
    end_of_run
};

/// Unless the next phase begins before this one's deadline, ends this process, with a message that names the phase and,
/// where it waits for others, those that are silent. `seconds_to_answer`: the deadline of phases without long work. The
/// tests name the phase in FINCH_TEST_HANG.
void begin_phase(const comm::Session& session, Phase phase, double seconds_to_answer);
/// From now on waits have deadlines of their own.
void end_phases();

/// Collective over the world. Whether a signal asked any rank to stop; then it is asked of all of them.
[[nodiscard]] bool stop_was_asked();

/// Places of all ranks, and the threads of this one.
struct Placement {
    cluster::Layout layout;
    std::vector<std::string> node_of_rank;
    int threads = 1;
    [[nodiscard]] int nodes() const;              ///< distinct ones
    [[nodiscard]] std::string node_list() const;  ///< "n1,n2", some of them if they are many
    [[nodiscard]] const cluster::Place& mine(int world_rank) const {
        return layout.places.at(static_cast<std::size_t>(world_rank));
    }
};

/// Collective over the world. Finds the nodes and makes the layout. Throws ConfigError if it does not fit.
[[nodiscard]] Placement place_ranks(const comm::Session& session, const config::Config& config,
                                    const cluster::Slurm& slurm);

/// Collective over the world. Every rank makes the first weights of one same individual and compares their checksums.
void check_first_weights(const config::Config& config, const data::Datasets& datasets);

/// Collective over the world. Logs, on world rank 0, version, ranks, workers, islands, nodes, and a line for each rank.
void log_summary(const comm::Session& session, const config::Config& config, const Placement& placement,
                 const std::string& device, cluster::AllReduceKind communicator);

/// The layout options that a configuration asks for.
[[nodiscard]] cluster::LayoutOptions layout_options(const config::Config& config);

}  // namespace finch::run
