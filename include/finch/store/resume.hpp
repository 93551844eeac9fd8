#pragma once

#include "finch/store/archive.hpp"
#include "finch/store/run_directory.hpp"

#include <optional>
#include <string>
#include <vector>

namespace finch::store {

/// Everything that a run directory knows: population.h5 and all journals, merged.
struct Recovered {
    ArchiveFacts facts;  ///< of the archive, events and reports of the journals added
    search::Space space;
    std::vector<search::Record> records;  ///< Started, Result, Move, Copy
    std::vector<std::pair<search::Id, search::Home>> homes;
    std::vector<std::pair<search::Id, std::int32_t>> memberships;
    std::vector<std::string> problems;  ///< damaged files and records, in words

    /// Merges records, homes and memberships into a population of any kind and layout.
    void merge_into(search::Population& population) const;
};

/// Reads; changes nothing but for damaged files, which are set aside. Nothing where the directory holds no run. Throws
/// FileError where there is an archive of which neither it nor its predecessor can be read.
[[nodiscard]] std::optional<Recovered> recover(const RunDirectory& directory, Curves curves = Curves::read);

}  // namespace finch::store
