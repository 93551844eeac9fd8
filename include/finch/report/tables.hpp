#pragma once

#include "finch/search/population.hpp"
#include "finch/store/archive.hpp"
#include "finch/store/resume.hpp"
#include "finch/store/run_directory.hpp"

#include <string>

/// Texts for people, from a run directory alone. Nothing here prints.
namespace finch::report {

/// The `top` best individuals that were born on each island: id, loss, accuracy, epochs, seconds, genes in words.
[[nodiscard]] std::string best_table(const search::Space& space, const search::Population& population,
                                     const store::ArchiveFacts& facts, int top);

/// What `finch show` prints of a run called `name`: state, counts by outcome, the best of each island, utilisation of
/// each worker, the last events.
[[nodiscard]] std::string overview(const store::Recovered& run, const std::string& name, int top);

/// Every individual as comma-separated values, a header line first, ordered by id.
[[nodiscard]] std::string csv(const store::Recovered& run);

enum class RunState { complete, stopped_early, interrupted, running };

/// How far a run is.
struct Status {
    RunState state = RunState::interrupted;
    std::size_t settled = 0;
    std::size_t unfinished = 0;
    std::int64_t budget_evaluations = -1;  ///< −1: none
    double best_loss = 0;                  ///< NaN: nobody yet
    /// Grows with every settled individual, and with every epoch's share that a saved training got further.
    double progress = 0;
};

/// From the run directory alone. Throws ConfigError where no run was begun there.
[[nodiscard]] Status status(const store::RunDirectory& directory);
/// "complete: 200/200 evaluated, best loss 0.0312".
[[nodiscard]] std::string status_text(const Status& status);

}  // namespace finch::report
