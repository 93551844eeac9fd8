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
    std::vector<search::Record>
        records;  ///< Started, Result, Move, Copy: merge them into a Population of any kind and layout
    std::vector<std::string> problems;  ///< damaged files and records, in words
};

/// Reads; changes nothing but for damaged files, which are set aside. Nothing where the directory holds no run. Throws
/// FileError where there is an archive of which neither it nor its predecessor can be read.
[[nodiscard]] std::optional<Recovered> recover(const RunDirectory& directory);

}  // namespace finch::store
