#pragma once

#include "finch/search/individual.hpp"
#include "finch/search/measure.hpp"
#include "finch/store/resume.hpp"
#include "finch/store/run_directory.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace finch::report {

/// All that is known of one individual: how it ended, its genes and parents, its learning curve, and of a program the
/// last `lines` of each of its outputs. Throws ConfigError if the run has no such individual.
[[nodiscard]] std::string individual_text(const store::Recovered& recovered, const store::RunDirectory& directory,
                                          search::Id id, const search::Measure& measure, std::size_t lines = 20);

/// Directory of the run of that number when its results were read, by `facts`; its number if that is not known.
[[nodiscard]] std::string directory_of(const store::ArchiveFacts& facts, std::uint64_t run);

/// The owner of the result of `individual`, which was not trained: "0.3.17", or "0.3.17 of /where/runs/earlier".
[[nodiscard]] std::string reused_from_text(const search::Individual& individual, const store::ArchiveFacts& facts);

}  // namespace finch::report
