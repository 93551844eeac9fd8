#pragma once

#include "finch/app/evolve.hpp"

#include <filesystem>

/// The verbs that train nothing. They run anywhere, without MPI, and return the exit code.
namespace finch::app {

struct ShowOptions {
    std::filesystem::path run;
    int top = 3;       ///< individuals per island
    bool csv = false;  ///< every individual as comma-separated values instead
};
[[nodiscard]] int show(const ShowOptions& options);

/// `options.config` may be a run directory or a configuration. `progress`: puts a number that grows as the run gets
/// further, and the name of its last start, before the line.
[[nodiscard]] int status(const RunOptions& options, bool progress);

[[nodiscard]] int print_config();
/// Writes generated images as IDX files.
[[nodiscard]] int generate_data(const std::filesystem::path& folder, std::int64_t samples, std::int64_t size,
                                std::uint64_t seed);

}  // namespace finch::app
