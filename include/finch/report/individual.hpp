#pragma once

#include "finch/search/individual.hpp"
#include "finch/store/resume.hpp"
#include "finch/store/run_directory.hpp"

#include <cstddef>
#include <string>

namespace finch::report {

/// All that is known of one individual: how it ended, its genes and parents, its learning curve, and of a program the
/// last `lines` of each of its outputs. Throws ConfigError where the run has no such individual.
[[nodiscard]] std::string individual_text(const store::Recovered& recovered, const store::RunDirectory& directory,
                                          search::Id id, const std::string& fitness, std::size_t lines = 20);

}  // namespace finch::report
