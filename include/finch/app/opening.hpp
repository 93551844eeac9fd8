#pragma once

#include "finch/app/evolve.hpp"
#include "finch/cluster/environment.hpp"
#include "finch/island/leases.hpp"
#include "finch/search/population.hpp"
#include "finch/store/archive.hpp"
#include "finch/store/run_directory.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace finch::app {

/// A run directory that was opened for a start: locked, everything in it merged, the restart number raised and synced.
struct OpenedRun {
    std::unique_ptr<store::RunLock> lock;
    store::ArchiveFacts facts;  ///< of this start
    std::vector<island::EarlierStart> earlier;
    double hours_before = 0;
    double node_hours_before = 0;
    bool one_at_a_time = false;  ///< island::WorkerOptions has it
    search::Population population{search::ExchangeKind::none, 1};
    std::vector<std::int32_t> bred_before;  ///< by worker, in the earlier starts; others bred nothing
    std::string greeting;                   ///< "a new run", or what is resumed
};

/// World rank 0 only. Opens or begins the run. Throws ConfigError where it is in use, was made with another
/// configuration or other data, or cannot be written. `nodes`: distinct ones of this start.
[[nodiscard]] OpenedRun open_run(const store::RunDirectory& directory, const config::Config& config,
                                 const RunOptions& options, const cluster::Slurm& slurm,
                                 const std::string& data_fingerprint, int workers, int islands, int nodes);

/// What the other leaders need of it beside the population, as bytes; and back (without lock, greeting and the facts'
/// texts, the population empty).
[[nodiscard]] std::string pack_run(const OpenedRun& run);
[[nodiscard]] OpenedRun unpack_run(const std::string& packed, search::ExchangeKind kind, int islands);

}  // namespace finch::app
