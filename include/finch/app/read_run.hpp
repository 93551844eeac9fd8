#pragma once

#include "finch/config/config.hpp"
#include "finch/report/competition.hpp"
#include "finch/store/resume.hpp"

#include <filesystem>

namespace finch::app {

/// A run as the verbs that tell of it read it.
struct ReadRun {
    store::Recovered recovered;
    config::Config config;
    report::Competition competition;
};

/// Changes nothing. Throws ConfigError where there is no run.
[[nodiscard]] ReadRun read_run(const std::filesystem::path& run);

}  // namespace finch::app
