#pragma once

#include "finch/report/competition.hpp"
#include "finch/search/individual.hpp"
#include "finch/store/resume.hpp"

#include <string>

namespace finch::report {

/// The content of `finch show` as one JSON object: run, state, counts, the measure of its losses, the `top` best
/// individuals of all and of each island by `competition`, the workers of the last start. NaN becomes null.
[[nodiscard]] std::string run_json(const store::Recovered& recovered, const search::Space& space,
                                   const Competition& competition, const std::string& run, int top);

/// Every individual of a run, each with what individual_json() has.
[[nodiscard]] std::string individuals_json(const store::Recovered& recovered, const search::Space& space,
                                           const search::Measure& measure, const std::string& run);

/// All that is recorded of one individual: the columns of /individuals under their names, its active genes, its
/// learning curve and the program's metrics. Throws ConfigError if the run has no such individual.
[[nodiscard]] std::string individual_json(const store::Recovered& recovered, const search::Space& space,
                                          const search::Measure& measure, search::Id id);

}  // namespace finch::report
