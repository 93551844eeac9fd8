#pragma once

#include "finch/report/competition.hpp"
#include "finch/search/individual.hpp"
#include "finch/store/resume.hpp"

#include <functional>
#include <string>

namespace finch::report {

/// Returns the content of `finch show` as one JSON object: run, state, counts, and the measure of the losses. The
/// object also contains the `top` best individuals of the run and of each island by `competition`, the workers of the
/// last start, `statistics`, the JSON object of statistics_json(), and, with several objectives, the hypervolume of the
/// front; with two also its course. NaN becomes null.
[[nodiscard]] std::string run_json(const store::Recovered& recovered, const search::Space& space,
                                   const Competition& competition, const std::string& run, int top,
                                   const std::string& statistics = "{}");

/// Returns every individual of a run as JSON, each with the members of individual_json().
[[nodiscard]] std::string individuals_json(const store::Recovered& recovered, const search::Space& space,
                                           const search::Measure& measure, const std::string& run);

/// Returns `genome` as a JSON object that tells how its network is built and trained.
using RecipeJson = std::function<std::string(const search::Genome& genome)>;
/// Returns the record of one individual as JSON: the columns of /individuals under their names, the active genes, the
/// learning curve, the program's metrics and, unless `recipe` is null, its recipe. Throws ConfigError if the run does
/// not contain the individual.
[[nodiscard]] std::string individual_json(const store::Recovered& recovered, const search::Space& space,
                                          const search::Measure& measure, search::Id id,
                                          const RecipeJson& recipe = nullptr);

}  // namespace finch::report
