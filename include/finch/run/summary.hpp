#pragma once

#include "finch/config/config.hpp"
#include "finch/search/population.hpp"
#include "finch/store/archive.hpp"
#include "finch/store/run_directory.hpp"

#include <string>

namespace finch::run {

/// The source of the test results: models/best.h5, or no results because this file has none.
enum class TestResults { read, none };

/// The run in sentences (report/summary.hpp), with the test results in models/best.h5 and commands for the next steps.
[[nodiscard]] std::string summary_of(const store::RunDirectory& directory, const config::Config& config,
                                     const search::Population& population, const store::ArchiveFacts& facts,
                                     TestResults results = TestResults::read);

/// The run's statistics as JSON (report::statistics_json()).
[[nodiscard]] std::string statistics_of(const store::RunDirectory& directory, const config::Config& config,
                                        const search::Population& population, const store::ArchiveFacts& facts);

/// World rank 0. Replaces RUN/summary.txt, which `cat` and tools/report.py show, by the run's present summary. Logs a
/// warning if it cannot be written.
void write_summary(const store::RunDirectory& directory, const config::Config& config,
                   const search::Population& population, const store::ArchiveFacts& facts, TestResults results);

}  // namespace finch::run
