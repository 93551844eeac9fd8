#pragma once

#include "finch/store/archive.hpp"
#include "finch/store/run_directory.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace finch::store {

/// All data of a run directory: population.h5 and all journals, merged.
struct Recovered {
    ArchiveFacts facts;  ///< of the archive, with events and reports of the journals
    search::Space space;
    std::vector<search::Individual> individuals;  ///< of the archive
    std::vector<search::Record> records;          ///< of the journals: Started, Result, Move, Copy
    std::vector<std::pair<search::Id, search::Home>> homes;
    std::vector<std::pair<search::Id, std::int32_t>> memberships;
    std::vector<std::string> problems;  ///< damaged files and records, as text

    /// Sets the space to `now`, the space of the run's configuration. If a gene has a single value in `now`, all
    /// genomes get this value, because earlier versions recorded `value: 3.10` as the number 3.1. Genes with steps lose
    /// rounding errors: earlier versions recorded 5.55e-17 for 0. Other genes do not change.
    void adopt(const search::Space& now);
    /// Merges individuals, records, homes and memberships into a population of any exchange kind and number of islands.
    void merge_into(search::Population& population) const;
    /// Merges like merge_into(), but moves the individuals and records instead of copying them.
    void move_into(search::Population& population);
};

/// Reads a run directory. Changes nothing, except that it sets damaged files aside if `on_damage` says so. Only the
/// holder of the run's lock may set files aside. Returns nothing if the directory holds no run. Throws FileError if
/// neither the archive nor its predecessor can be read. Throws ConfigError if the archive is missing but other files of
/// the run exist. Throws StorageError if the file system fails.
[[nodiscard]] std::optional<Recovered> recover(const RunDirectory& directory, OnDamage on_damage,
                                               Curves curves = Curves::read);

/// Reads a run directory without changing it. Throws ConfigError if the directory holds no run.
[[nodiscard]] Recovered recover_run(const RunDirectory& directory, Curves curves = Curves::read);

/// Returns the message that `directory` holds no run, with the run directory that was probably meant.
[[nodiscard]] std::string no_run_text(const RunDirectory& directory);
/// Throws ConfigError with the path of `directory` and no_run_text().
[[noreturn]] void throw_no_run(const RunDirectory& directory);

/// Returns the known duration of each start, in seconds. The duration is the longest time that a worker of the start
/// reported, or the time that was stored with the start if that is longer.
[[nodiscard]] std::map<std::uint32_t, double> seconds_of_starts(const ArchiveFacts& facts);

}  // namespace finch::store
