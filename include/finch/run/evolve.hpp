#pragma once

#include "finch/base/run_state.hpp"
#include "finch/comm/mpi.hpp"
#include "finch/config/config.hpp"
#include "finch/process/launcher.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace finch::run {

struct RunOptions {
    std::filesystem::path config;
    std::vector<std::string> settings;         ///< --set path=value
    std::optional<std::filesystem::path> run;  ///< --run DIR; nothing: runs/NAME
    bool fresh = false;
    bool profile = false;                           ///< finch train: measures the time per operation
    std::optional<std::vector<std::string>> genes;  ///< finch train: name=value for every gene; nothing: a search
    bool is_trial = false;                          ///< finch plan --try: prints no summary
};

/// Collective over the world. Implements finch evolve and finch train: runs or resumes a search. `launcher` starts the
/// programs of a CommandObjective. Returns the exit code, the same on every rank. Throws ConfigError.
[[nodiscard]] int evolve(comm::Session& session, const RunOptions& options, process::Launcher launcher);

/// Collective over the world. Implements finch train: trains one individual on all ranks as one worker. The individual
/// has the genes in `options`, or the genes of the first individual of the search if `options` has none.
[[nodiscard]] int train_one(comm::Session& session, RunOptions options, process::Launcher launcher);

/// Returns the run directory that the options select.
[[nodiscard]] std::filesystem::path run_directory_of(const config::Config& config, const RunOptions& options);

}  // namespace finch::run
