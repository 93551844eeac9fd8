#pragma once

#include "finch/base/replace.hpp"
#include "finch/base/run_state.hpp"
#include "finch/search/population.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace finch::store {

/// One start of a run.
struct Start {
    std::uint32_t restart = 0;
    std::int32_t workers = 0;
    std::int32_t nodes = 0;
    double began = 0;
    double seconds = 0;
    double progress = 0;
    std::int32_t silent_ends = 0;
    std::string job = {};
    std::string cluster = {};
    std::string node_list = {};
    std::string log = {};
    double deadline = 0;
    bool operator==(const Start&) const = default;
};

constexpr auto fields_of(const Start*) {
    return std::tuple{
        Field{"restart", &Start::restart, "number of the start; 0 is the first"},
        Field{"workers", &Start::workers, "number of workers"},
        Field{"nodes", &Start::nodes, "number of distinct nodes"},
        Field{"began", &Start::began, "time at which the start began, Unix seconds"},
        Field{"seconds", &Start::seconds, "duration of the start in seconds, as far as known"},
        Field{"progress", &Start::progress,
              "progress of the run when the start began: finished individuals, plus shares of unfinished ones"},
        Field{"silent_ends", &Start::silent_ends,
              "number of consecutive starts right before it that made no progress and left no note of their end"},
        Field{"job", &Start::job, "number of the Slurm job; empty: none"},
        Field{"cluster", &Start::cluster, "name of the Slurm cluster"},
        Field{"node_list", &Start::node_list, "names of the nodes, as Slurm writes them"}.long_text(),
        Field{"log", &Start::log, "file with the output of the start, as far as known"}.long_text(),
        Field{"deadline", &Start::deadline, "time at which the job reaches its time limit, Unix seconds; 0: not known"},
    };
}
static_assert(lists_every_member<Start>);

/// Another run that supplied results for individuals of this run.
struct ReusedRun {
    std::uint64_t run = 0;
    std::string directory;
    bool operator==(const ReusedRun&) const = default;
};

constexpr auto fields_of(const ReusedRun*) {
    return std::tuple{
        Field{"run", &ReusedRun::run,
              "number of the run, as in reused_run of /individuals and in the attribute run of its files"},
        Field{"directory", &ReusedRun::directory, "directory of the run when its results were read"}.long_text(),
    };
}
static_assert(lists_every_member<ReusedRun>);

/// The properties of a run, and the contents of /starts, /events, /reused_runs and /workers.
struct ArchiveFacts {
    std::uint64_t run = 0;  ///< random number of the run, in every record
    std::uint64_t seed = 0;
    std::uint32_t restarts = 0;  ///< number of this start: 0 is the first
    std::string config;          ///< the effective configuration's text
    std::string data_fingerprint;
    std::string program_version;  ///< version of the program that wrote the archive; write_archive() writes its own
    int workers = 1;
    int islands = 1;
    RunState state = RunState::running;
    std::int64_t budget_evaluations = -1;  ///< −1: none
    std::int64_t budget_epochs = -1;       ///< −1: none
    std::vector<Start> starts;             ///< in their order; the last one is the present start
    std::vector<search::Event> events;
    std::vector<ReusedRun> reused_runs;                                              ///< of different numbers
    std::map<std::pair<std::uint32_t, std::int32_t>, search::WorkerReport> reports;  ///< by (restart, worker)

    /// Stores a worker's report unless a later report of the same worker and start is known.
    void merge(const search::WorkerReport& report) {
        search::WorkerReport& known = reports[{report.restart, report.worker}];
        if (report.time >= known.time) {
            known = report;
        }
    }
};

/// Treatment of learning curves: read into memory, or left in the file. Learning curves can need much more memory than
/// the individuals.
enum class Curves { read, leave };

/// Writes population.h5 (docs/files.md) in one atomic step: /individuals with the genes as typed columns (an enum for a
/// choice), /curves, /metrics, /problems, /memberships, /homes, /workers, /starts, /events, /reused_runs, /space,
/// /choices, /config. If an individual has no curve in memory, copies its curve from the archive that is replaced, or
/// from that archive's predecessor. A file above about 16 MiB is never completely in memory. Throws ApiError or its
/// subclass StorageError if writing fails. Throws ConfigError if the names of genes and choices exceed HDF5's limit for
/// a table's type. If `before_replacing` throws, the old archive stays.
void write_archive(const std::filesystem::path& path, const search::Space& space, const search::Population& population,
                   const ArchiveFacts& facts, const std::function<void()>& before_replacing = {});

/// Throws the ConfigError of write_archive() if the names of genes and choices are too long. Writes no file.
void check_archivable(const search::Space& space);

struct Archive {
    ArchiveFacts facts;
    search::Space space;
    std::vector<search::Individual> individuals;
    std::vector<std::pair<search::Id, search::Home>> homes;
    std::vector<std::pair<search::Id, std::int32_t>> memberships;
};

/// Reads an archive. All values are exactly those that were written. If the file is damaged, reads its predecessor and
/// adds a message to `problems`. Returns nothing if there is no archive. Throws FileError if there was an archive, but
/// neither it nor its predecessor can be read.
[[nodiscard]] std::optional<Archive> read_archive(const std::filesystem::path& path, std::vector<std::string>& problems,
                                                  OnDamage on_damage, Curves curves = Curves::read);

}  // namespace finch::store
