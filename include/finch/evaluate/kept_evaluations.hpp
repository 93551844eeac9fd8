#pragma once

#include "finch/config/command.hpp"
#include "finch/search/individual.hpp"
#include "finch/search/population.hpp"
#include "finch/store/run_directory.hpp"

namespace finch::evaluate {

/// True if the folder and the output of a finished individual are kept. `best`: the best individual; null if there is
/// none.
[[nodiscard]] bool keeps_evaluation(config::Keep keep, const search::Individual& individual,
                                    const search::Individual* best);

/// World rank 0 only, after all evaluations. Removes the folders and outputs of all finished individuals that `keep`
/// does not keep. These files are left over from killed starts, or belong to individuals that were only the best of
/// their worker.
void remove_spare_evaluations(const store::RunDirectory& directory, const search::Population& population,
                              config::Keep keep);

}  // namespace finch::evaluate
