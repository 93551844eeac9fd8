#pragma once

#include "finch/config/command.hpp"
#include "finch/search/individual.hpp"
#include "finch/search/population.hpp"
#include "finch/store/run_directory.hpp"

namespace finch::evaluate {

/// Whether the folder and the output of a finished individual stay; `best` is the best one, null if there is none.
[[nodiscard]] bool keeps_evaluation(config::Keep keep, const search::Individual& individual,
                                    const search::Individual* best);

/// Removes what is not to stay of the finished individuals: what starts that were killed left, and all but the last of
/// the best ones of each worker. World rank 0 only, after all evaluations.
void remove_spare_evaluations(const store::RunDirectory& directory, const search::Population& population,
                              config::Keep keep);

}  // namespace finch::evaluate
