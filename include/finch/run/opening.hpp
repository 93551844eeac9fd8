#pragma once

#include "finch/cluster/environment.hpp"
#include "finch/island/leases.hpp"
#include "finch/run/evolve.hpp"
#include "finch/search/duplicates.hpp"
#include "finch/search/population.hpp"
#include "finch/store/archive.hpp"
#include "finch/store/run_directory.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace finch::run {

/// Facts of the run and its earlier starts that every rank has; a message.
struct RunBefore {
    std::uint64_t run = 0;
    std::uint32_t restart = 0;  ///< of this start
    std::vector<island::EarlierStart> earlier = {};
    double hours = 0;
    double node_hours = 0;
    bool one_at_a_time = false;                           ///< island::WorkerOptions has it
    std::vector<std::int32_t> bred = {};                  ///< by worker, in the earlier starts; others bred nothing
    std::vector<std::uint32_t> initial_points_left = {};  ///< island::WorkerOptions has it
};

/// A run directory that was opened for a start: locked, everything in it merged, the restart number raised.
struct OpenedRun {
    std::unique_ptr<store::RunLock> lock;
    store::ArchiveFacts facts;  ///< of this start, on world rank 0
    RunBefore before;
    search::Population population{search::ExchangeKind::none, 1};
    search::OtherResults other_results;  ///< of the runs of search.reuse
    std::string greeting;                ///< "a new run", or what is resumed
};

/// World rank 0 only. Opens or begins the run. Throws ConfigError if it is in use, was made with another
/// configuration or other data, or cannot be written, or where a run of search.reuse does not fit. `nodes`: distinct
/// ones of this start.
[[nodiscard]] OpenedRun open_run(const store::RunDirectory& directory, const config::Config& config,
                                 const RunOptions& options, const cluster::Slurm& slurm,
                                 const std::string& data_fingerprint, int workers, int islands, int nodes);

/// World rank 0 only. Throws ConfigError if the networks of the earlier starts were trained with other names of classes
/// than `names`: one that is left in the run directory says so.
void check_class_names(const OpenedRun& run, const store::RunDirectory& directory,
                       const std::vector<std::string>& names);

/// World rank 0 only, before anybody breeds: writes the opened run, so that no number of this start can be given out
/// again, and clears what it no longer needs. Throws StorageError.
void record_start(OpenedRun& run, const store::RunDirectory& directory, const config::Config& config);

}  // namespace finch::run
