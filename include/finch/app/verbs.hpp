#pragma once

#include "finch/run/evolve.hpp"

#include <array>
#include <filesystem>
#include <string_view>

/// The verbs that train nothing. They run anywhere, without MPI, and return the exit code.
namespace finch::app {

enum class ExportFormat { csv, json };
constexpr std::array<std::string_view, 2> words_of(ExportFormat) {
    return {"csv", "json"};
}

struct ExportOptions {
    std::filesystem::path run;
    std::string format;  ///< a word of ExportFormat
    std::optional<std::filesystem::path> output;
};
/// Throws ConfigError if there is no such format, no run, or no place to write to.
[[nodiscard]] int export_run(const ExportOptions& options);

/// `options.config` may be a run directory or a configuration. `progress`: puts a number that grows as the run gets
/// further, and the name of its last start, before the line.
[[nodiscard]] int status(const run::RunOptions& options, bool progress);
/// A table of several run directories. Returns the exit code of the worst (report::exit_code()).
[[nodiscard]] int status_of_several(const std::vector<std::filesystem::path>& runs);

/// Prints the run directory that status() would read, which need not exist.
[[nodiscard]] int print_run_directory(const run::RunOptions& options);

[[nodiscard]] int print_config();
/// Writes generated images as IDX files.
[[nodiscard]] int generate_data(const std::filesystem::path& folder, std::int64_t samples, std::int64_t size,
                                std::uint64_t seed);

}  // namespace finch::app
