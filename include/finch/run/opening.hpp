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
#include <optional>
#include <string>
#include <vector>

namespace finch::run {

/// Facts about the run and its earlier starts. World rank 0 sends this struct to every rank.
struct RunBefore {
    std::uint64_t run = 0;
    std::uint32_t restart = 0;  ///< of this start
    std::vector<island::EarlierStart> earlier = {};
    double hours = 0;
    double node_hours = 0;
    bool one_at_a_time = false;                           ///< see island::WorkerOptions
    std::vector<std::int32_t> bred = {};                  ///< by worker, in earlier starts; absent workers: 0
    std::vector<std::uint32_t> initial_points_left = {};  ///< see island::WorkerOptions
};

/// A run directory that was opened for a start: it is locked, its files are merged, and the restart number is
/// incremented.
struct OpenedRun {
    std::unique_ptr<store::RunLock> lock;
    store::ArchiveFacts facts;  ///< of this start, on world rank 0 only
    RunBefore before;
    search::Population population{search::ExchangeKind::none, 1};
    search::OtherResults other_results;  ///< of the runs in search.reuse
    std::string greeting;                ///< a log line: a new run, or the state of the resumed run
};

/// Throws ConfigError if the run of `facts` in `directory` was made with another configuration or other data.
/// `data_fingerprint`: nothing if the data are not known.
void check_same_search(const config::Config& config, const store::ArchiveFacts& facts,
                       const store::RunDirectory& directory, const std::optional<std::string>& data_fingerprint);

/// World rank 0 only. Opens an existing run or creates a new one. Throws ConfigError if the run is in use, cannot be
/// written, or was made with another configuration or other data. Throws ConfigError if a run in search.reuse does not
/// fit. `nodes`: the number of distinct nodes of this start.
[[nodiscard]] OpenedRun open_run(const store::RunDirectory& directory, const config::Config& config,
                                 const RunOptions& options, const cluster::Slurm& slurm,
                                 const std::string& data_fingerprint, int workers, int islands, int nodes);

/// World rank 0 only. Throws ConfigError if the networks of earlier starts were trained with other class names than
/// `names`. Reads the earlier names from a network in the run directory; accepts any names if there is no network.
void check_class_names(const OpenedRun& run, const store::RunDirectory& directory,
                       const std::vector<std::string>& names);

/// World rank 0 only. Writes the opened run to its archive and removes files that are no longer needed. Must be called
/// before any worker breeds: no later start can then get the same restart number. Throws StorageError.
void record_start(OpenedRun& run, const store::RunDirectory& directory, const config::Config& config);

}  // namespace finch::run
