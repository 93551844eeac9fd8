#pragma once

#include "finch/config/config.hpp"
#include "finch/report/summary.hpp"
#include "finch/search/population.hpp"
#include "finch/store/archive.hpp"
#include "finch/store/run_directory.hpp"

#include <filesystem>
#include <string>

namespace finch::run {

/// The run in sentences (report/summary.hpp), with the test results in models/best.h5 and commands for the next steps.
[[nodiscard]] std::string summary_of(const store::RunDirectory& directory, const config::Config& config,
                                     const search::Population& population, const store::ArchiveFacts& facts);

/// Returns how a user in `folder` can type the `program` and the report tool of its installation or source tree: the
/// name alone if `search_path` (PATH) finds it, else a path.
[[nodiscard]] report::Commands commands_of(const std::filesystem::path& program, const std::filesystem::path& folder,
                                           const std::string& search_path);

/// World rank 0. Replaces RUN/summary.txt, which `cat` and tools/report.py show, by the run's present summary. Logs a
/// warning if it cannot be written.
void write_summary(const store::RunDirectory& directory, const config::Config& config,
                   const search::Population& population, const store::ArchiveFacts& facts);

}  // namespace finch::run
