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

/// Returns the seconds for which a start waits in MPI_Init for missing ranks: FINCH_START_SECONDS, 120 if it is not
/// set.
[[nodiscard]] double start_seconds();

/// Injects a fault for the tests. If FINCH_TEST_HANG is "RANK:PHASE:SECONDS" and `phase` begins with PHASE, rank RANK
/// of mpirun prints a message and sleeps forever. On the other ranks the function then returns SECONDS as the deadline
/// of the phase. Otherwise the function returns `seconds`.
double hang_for_test(const std::string& phase, double seconds);

/// Collective over the world. Waits until all ranks are present; must be the first call after MPI_Init. Throws Error
/// with the names of the missing ranks when a deadline has passed.
void barrier_with_deadline(const comm::Session& session);

/// The phases of a start and of an end. startup.cpp defines the name and the deadline of each phase.
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

/// Begins a phase. If the next phase does not begin before the deadline of this phase, the process ends with a message.
/// The message names the phase and, if the phase waits for other ranks, the silent ranks. `seconds_to_answer`: the
/// deadline of phases without long work. The tests select a phase by its name in FINCH_TEST_HANG.
void begin_phase(const comm::Session& session, Phase phase, double seconds_to_answer);
/// Ends the last phase. Later waits for other ranks have deadlines of their own.
void end_phases();

/// Collective over the world. True if a signal requested a stop on any rank; the request then applies to all ranks.
[[nodiscard]] bool stop_was_asked();

/// The places of all ranks, and the number of threads of this rank.
struct Placement {
    cluster::Layout layout;
    std::vector<std::string> node_of_rank;
    int threads = 1;
    [[nodiscard]] int nodes() const;              ///< number of distinct nodes
    [[nodiscard]] std::string node_list() const;  ///< "n1,n2"; at most 64 names
    [[nodiscard]] const cluster::Place& mine(int world_rank) const {
        return layout.places.at(static_cast<std::size_t>(world_rank));
    }
};

/// Collective over the world. Determines the node of each rank, and assigns the ranks to workers and islands. Throws
/// ConfigError if the ranks do not fit the configuration.
[[nodiscard]] Placement place_ranks(const comm::Session& session, const config::Config& config,
                                    const cluster::Slurm& slurm);

/// Collective over the world. Every rank initializes the weights of the same network. Throws Error if the checksums of
/// the ranks differ.
void check_first_weights(const config::Config& config, const data::Datasets& datasets);

/// Collective over the world. Logs, on world rank 0, the version, the numbers of ranks, workers, islands and nodes, and
/// a line for each rank.
void log_summary(const comm::Session& session, const config::Config& config, const Placement& placement,
                 const std::string& device, cluster::AllReduceKind communicator);

/// Returns the layout options of a configuration.
[[nodiscard]] cluster::LayoutOptions layout_options(const config::Config& config);

}  // namespace finch::run
