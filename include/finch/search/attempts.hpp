#pragma once

#include "finch/search/population.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace finch::search {

/// How many ranks of one worker ended abnormally in the last start of a run, and for which reason. Each rank writes a
/// note about its own end.
struct WorkerEnd {
    int external = 0;   ///< number of ranks that were ended from outside: by a stop signal, or by a fault elsewhere
    int own_fault = 0;  ///< number of ranks that ended by their own fault: SEGV, ABRT, a device that failed in a step
};

/// The notes of the last start's ranks about their ends, by worker. No notes at all mean that all ranks ended at the
/// same time without warning, for example in a power failure.
using EndNotes = std::map<std::int32_t, WorkerEnd>;

/// After this many consecutive starts that left no end note and made no progress, the unfinished individuals resume one
/// at a time. Each failed attempt then counts as a death of its individual.
inline constexpr int most_silent_ends = 4;
/// An individual fails permanently if the process that trained it died this many times without progress in between.
inline constexpr int most_deaths = 2;

/// Finds the individuals that were in training when the start number `restart` of the run was interrupted. Returns
/// those that lost their worker's process, with this death counted. After `most_deaths` deaths in a row without
/// progress, an individual gets the outcome `failed`, with the reason in its `problem`. If any rank noted a fault of
/// its own, all workers with a faulty rank count as dead. Missing notes then prove nothing, because launchers kill
/// ranks that end slowly. If all notes name external reasons, all workers with a rank that left no note count as dead.
/// Without any notes, all workers count as dead if `one_at_a_time`; otherwise no deaths are counted, because the cause
/// is unknown.
[[nodiscard]] std::vector<Individual> charge_deaths(const Population& population, std::uint32_t restart,
                                                    const EndNotes& notes, bool one_at_a_time, double unix_seconds);

/// Returns the progress of a run: the number of finished individuals, the fractions of the unfinished ones, and a small
/// amount for each recorded death. Deaths count as progress because they help to find the individual that kills its
/// process.
[[nodiscard]] double progress_of(const Population& population);

}  // namespace finch::search
