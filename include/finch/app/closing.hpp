#pragma once

#include "finch/app/run_context.hpp"
#include "finch/app/storage.hpp"
#include "finch/island/worker.hpp"

/// What is left to write once a search has ended.
namespace finch::app {

/// Keeps models/best.h5 as new as the archive, so that it is there whatever ends the run. `context` must outlive it.
[[nodiscard]] FileArchive::Written publisher(const RunContext& context, std::uint64_t run);

/// World rank 0, with seconds left and maybe no peer alive: what it knows, and before anything that waits for others.
void close_urgently(const RunContext& context, const island::Worker& worker, FileArchive& archive);

/// Leaders: after an orderly end everything is in one synced archive, and the journals are emptied. Collective over the
/// leaders. Returns the exit code of the run, on world rank 0, to which alone `archive` is given.
[[nodiscard]] int close_orderly(const RunContext& context, const island::Worker& worker, FileJournal& journal,
                                FileArchive* archive);

}  // namespace finch::app
