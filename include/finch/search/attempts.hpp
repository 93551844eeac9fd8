#pragma once

#include "finch/search/population.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace finch::search {

/// What the ranks of one worker noted of their ends in the last start, where that start did not end in order.
struct WorkerEnd {
    int external = 0;   ///< ranks that were ended from outside: a signal to stop, a fault elsewhere
    int own_fault = 0;  ///< ranks that ended by a fault of their own: SEGV, ABRT, a device that failed in a step
};

/// The notes of the last start's ranks, by worker. Without any, all were ended at once, as by a power failure.
using EndNotes = std::map<std::int32_t, WorkerEnd>;

/// After so many starts in a row without a note and without progress, the unfinished resume one at a time, and
/// each attempt is then charged.
inline constexpr int most_silent_ends = 4;
/// An individual whose process died so often, without progress between, is given up.
inline constexpr int most_deaths = 2;

/// The unfinished individuals that were in training when the start `restart` broke off and whose own process died, each
/// with that death counted. One that has died `most_deaths` times in a row without progress has failed, and says why.
/// A process died if a rank of its worker ended by its own fault. If no rank of any worker did, it died if one left no
/// note although others did: a launcher kills ranks that end slowly. If no rank left a note, only a start of
/// `one_at_a_time` tells whose process it was. A pure function.
[[nodiscard]] std::vector<Individual> charge_deaths(const Population& population, std::uint32_t restart,
                                                    const EndNotes& notes, bool one_at_a_time, double unix_seconds);

/// How far the run is: finished individuals, shares of the unfinished, and a little for each recorded death, for a
/// start that finds the individual which ends the process is progress.
[[nodiscard]] double progress_of(const Population& population);

}  // namespace finch::search
