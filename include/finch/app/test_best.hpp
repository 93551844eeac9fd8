#pragma once

#include "finch/comm/mpi.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace finch::app {

struct TestOptions {
    std::filesystem::path run;
    std::optional<std::string> data;    ///< in place of the run's data.path
    std::vector<std::string> settings;  ///< --set: of data and of workers
    std::optional<std::filesystem::path> csv;
};

/// Collective over the world, whose ranks become one worker. Measures models/best.h5 of a run on the run's test set, or
/// on that of the data that the options name, whose training set need not be there; prints the figures and the
/// confusions, and writes the predictions to `csv`. Returns 0. Throws ConfigError if the run has no network, or one
/// that does not take the data.
[[nodiscard]] int test_best(comm::Session& session, const TestOptions& options);

}  // namespace finch::app
