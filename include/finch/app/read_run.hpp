#pragma once

#include "finch/config/config.hpp"
#include "finch/report/competition.hpp"
#include "finch/report/status.hpp"
#include "finch/store/resume.hpp"

#include <filesystem>

namespace finch::app {

/// A run as the reading verbs need it, with the state that `finch status` prints.
struct ReadRun {
    store::Recovered recovered;
    config::Config config;
    report::Competition competition;
};

/// Changes nothing. Throws ConfigError if there is no run.
[[nodiscard]] ReadRun read_run(const std::filesystem::path& run);

/// How far it is, and by what measure. Throws as report::status() does.
[[nodiscard]] report::Status status_of(const std::filesystem::path& run);

}  // namespace finch::app
