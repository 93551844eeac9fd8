#pragma once

#include "finch/island/worker.hpp"
#include "finch/run/run.hpp"
#include "finch/run/storage.hpp"

/// The final writes to files after a search.
namespace finch::run {

/// Returns a callback that updates models/best.h5 after each write of the archive, so this file is up to date however
/// the run ends. `run` must outlive the callback. `number`: the run number.
[[nodiscard]] FileArchive::Written publisher(const Run& run, std::uint64_t number);

/// World rank 0 only. Writes the archive at an urgent stop, with only seconds left and other ranks possibly dead. Must
/// be called before any operation that waits for other ranks.
void close_urgently(const island::Worker& worker, FileArchive& archive);

/// Collective over the leaders. After an orderly end: writes everything to one synced archive, then empties the
/// journals. `archive`: null except on world rank 0. Returns the exit code of the run on world rank 0.
[[nodiscard]] int close_orderly(const Run& run, const island::Worker& worker, FileJournal& journal,
                                FileArchive* archive);

}  // namespace finch::run
