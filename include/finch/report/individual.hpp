#pragma once

#include "finch/search/individual.hpp"
#include "finch/search/measure.hpp"
#include "finch/store/resume.hpp"
#include "finch/store/run_directory.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace finch::report {

/// Returns the facts about one individual: outcome, genes, parents, learning curve and, for a program, the last `lines`
/// lines of each output. Throws ConfigError if the run does not contain the individual.
[[nodiscard]] std::string individual_text(const store::Recovered& recovered, const store::RunDirectory& directory,
                                          search::Id id, const search::Measure& measure, std::size_t lines = 20);

/// Returns the directory of the run with number `run`, as recorded in `facts` when the run's results were read. Returns
/// the run number as text if the directory is unknown.
[[nodiscard]] std::string directory_of(const store::ArchiveFacts& facts, std::uint64_t run);

/// Returns the individual that supplied the result of `individual`, which was not trained: "0.3.17", or "0.3.17 of
/// /where/runs/earlier" for another run.
[[nodiscard]] std::string reused_from_text(const search::Individual& individual, const store::ArchiveFacts& facts);

}  // namespace finch::report
