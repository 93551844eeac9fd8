#pragma once

#include "finch/island/worker.hpp"
#include "finch/run/run.hpp"
#include "finch/run/storage.hpp"

/// The last writes after a search.
namespace finch::run {

/// Keeps models/best.h5 as new as the archive, so that it is there whatever ends the run. `run` must outlive it.
[[nodiscard]] FileArchive::Written publisher(const Run& run, std::uint64_t number);

/// World rank 0, with seconds left and maybe no peer alive: what it knows, and before anything that waits for others.
void close_urgently(const Run& run, const island::Worker& worker, FileArchive& archive);

/// Leaders: after an orderly end everything is in one synced archive, and the journals are emptied. Collective over the
/// leaders. Returns the exit code of the run, on world rank 0, to which alone `archive` is given.
[[nodiscard]] int close_orderly(const Run& run, const island::Worker& worker, FileJournal& journal,
                                FileArchive* archive);

}  // namespace finch::run
