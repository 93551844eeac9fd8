#pragma once

#include "finch/store/archive.hpp"
#include "finch/store/run_directory.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace finch::store {

/// Everything that a run directory knows: population.h5 and all journals, merged.
struct Recovered {
    ArchiveFacts facts;  ///< of the archive, events and reports of the journals added
    search::Space space;
    std::vector<search::Individual> individuals;  ///< of the archive
    std::vector<search::Record> records;          ///< of the journals: Started, Result, Move, Copy
    std::vector<std::pair<search::Id, search::Home>> homes;
    std::vector<std::pair<search::Id, std::int32_t>> memberships;
    std::vector<std::string> problems;  ///< damaged files and records, in words

    /// Makes `now` the space, which the run's configuration gives, and its values those of the genes that have one
    /// value there: earlier versions recorded `value: 3.10` as the number 3.1. Of other genes nothing changes.
    void adopt(const search::Space& now);
    /// Merges individuals, records, homes and memberships into a population of any kind and layout.
    void merge_into(search::Population& population) const;
    /// The same, and keeps no individual and no record.
    void move_into(search::Population& population);
};

/// Reads, and changes nothing but for damaged files where `on_damage` says so: the holder of the run's lock alone may.
/// Nothing if the directory holds no run. Throws FileError if there is an archive of which neither it nor its
/// predecessor can be read, ConfigError if a run's archive is gone and other files of it are not, and StorageError
/// where the file system fails.
[[nodiscard]] std::optional<Recovered> recover(const RunDirectory& directory, OnDamage on_damage,
                                               Curves curves = Curves::read);

/// The same of a run that only is read. Throws ConfigError if there is none.
[[nodiscard]] Recovered recover_run(const RunDirectory& directory, Curves curves = Curves::read);

/// Throws ConfigError: there is no run in `directory`.
[[noreturn]] void throw_no_run(const RunDirectory& directory);

/// The seconds that each start lasted, as far as is known: those of its longest worker or, where it ended before they
/// were told, those that were written with the start.
[[nodiscard]] std::map<std::uint32_t, double> seconds_of_starts(const ArchiveFacts& facts);

}  // namespace finch::store
