#pragma once

#include "finch/comm/mpi.hpp"
#include "finch/config/config.hpp"
#include "finch/report/competition.hpp"
#include "finch/report/status.hpp"
#include "finch/report/tables.hpp"
#include "finch/run/evolve.hpp"
#include "finch/store/resume.hpp"

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Most verbs of the command line; each returns the exit code. Those that take a Session need MPI, the others do not.
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

/// Collective over the world, whose ranks become one worker. Trains the individual `id` of the run in `run` again,
/// alone, and compares each epoch with what is recorded. Returns 0 if all that the same number of ranks trained is
/// equal to the last bit, 1 if it is not or there is no such epoch. Throws ConfigError if there is no such
/// individual, or the run trains no networks.
[[nodiscard]] int replay(comm::Session& session, const std::filesystem::path& run, const std::string& id);

/// `finch show`. At most one of csv, json and follow.
struct ShowOptions {
    std::filesystem::path run;
    std::string id;       ///< of the one individual to show; empty: the run
    report::Top top;      ///< individuals that it lists
    bool csv = false;     ///< every individual as comma-separated values instead
    bool json = false;    ///< one JSON object instead
    bool follow = false;  ///< again and again, until the run has ended
};
[[nodiscard]] int show(const ShowOptions& options);

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
