#pragma once

#include "finch/comm/mpi.hpp"
#include "finch/config/config.hpp"
#include "finch/process/launcher.hpp"
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

/// Most verbs (subcommands) of the program finch. Each function returns the exit code. Verbs with a Session parameter
/// need MPI, the other verbs do not.
namespace finch::app {

enum class ExportFormat { csv, json };
constexpr std::array<std::string_view, 2> words_of(ExportFormat) {
    return {"csv", "json"};
}
/// The formats that finch-export (tools/export.py) writes.
inline constexpr std::array<std::string_view, 5> formats_of_script{"pytorch", "onnx", "trace", "graphml", "optuna"};

struct ExportOptions {
    std::filesystem::path run;
    std::string format;  ///< one of the words of ExportFormat
    std::optional<std::filesystem::path> output;
};
/// Exports every individual of a run as CSV or JSON. Throws ConfigError if the format is unknown, the run does not
/// exist, or the output cannot be written. The message for a format of finch-export contains its command.
[[nodiscard]] int export_run(const ExportOptions& options);

/// Prints the state and progress of a run as one line. `options.config`: a run directory or a configuration.
/// `progress`: prints two more values before the line: a number that grows with the progress of the run, and the name
/// of the last start.
[[nodiscard]] int status(const run::RunOptions& options, bool progress);
/// Prints a table of several run directories. Returns the exit code of the run in the worst state
/// (report::exit_code()).
[[nodiscard]] int status_of_several(const std::vector<std::filesystem::path>& runs);

/// Prints the run directory that status() would read, even if it does not exist.
[[nodiscard]] int print_run_directory(const run::RunOptions& options);

[[nodiscard]] int print_config();
/// Writes generated images as IDX files.
[[nodiscard]] int generate_data(const std::filesystem::path& folder, std::int64_t samples, std::int64_t size,
                                std::uint64_t seed);

/// Collective over the world. All ranks form one worker, which trains the individual `id` of the run in `run` again, or
/// runs its program again, and compares each epoch with the recorded epoch. Epochs are comparable if the same number of
/// ranks trained them. Returns 0 if all comparable epochs are equal to the last bit. Returns 1 if an epoch differs or
/// no epoch is comparable. Throws ConfigError if the individual is unknown or the objective is a function.
[[nodiscard]] int replay(comm::Session& session, process::Launcher launcher, const std::filesystem::path& run,
                         const std::string& id);

/// Options of `finch show`. At most one of csv, json and follow is true.
struct ShowOptions {
    std::filesystem::path run;
    std::string id;       ///< the individual to show; empty: the whole run
    report::Top top;      ///< number of best individuals to list
    bool csv = false;     ///< print every individual as comma-separated values
    bool json = false;    ///< print one JSON object
    bool follow = false;  ///< repeat the output until the run has ended
};
[[nodiscard]] int show(const ShowOptions& options);

struct TestOptions {
    std::filesystem::path run;
    std::optional<std::string> data;    ///< replaces the run's data.path
    std::vector<std::string> settings;  ///< --set, only for keys of `data` and `workers`
    std::optional<std::filesystem::path> csv;
};

/// Collective over the world. All ranks form one worker, which measures models/best.h5 of a run on a test set. This is
/// the test set of the run, or of other data in the options; other data need no training set. Prints the figures and
/// the confusion matrix, and writes the predictions to `csv`. Returns 0. Throws ConfigError if the run has no network
/// or the network does not fit the data.
[[nodiscard]] int test_best(comm::Session& session, const TestOptions& options);

/// A run and its configuration, for verbs that only read. Contains the same run state as the output of `finch status`.
struct ReadRun {
    store::Recovered recovered;
    config::Config config;
    report::Competition competition;
};

/// Reads a run without changing it. Throws ConfigError if there is no run.
[[nodiscard]] ReadRun read_run(const std::filesystem::path& run);

/// Returns the status of a run, including `measure`, the meaning of its loss. Throws the same exceptions as
/// report::status().
[[nodiscard]] report::Status status_of(const std::filesystem::path& run);

}  // namespace finch::app
