#pragma once

#include "finch/comm/mpi.hpp"
#include "finch/config/config.hpp"
#include "finch/process/launcher.hpp"
#include "finch/search/individual.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace finch::app {

/// Collective over the world. All ranks form one worker, which runs the program of the last individual of `lineage`
/// again in a temporary folder beside `run`, and compares its reports with the recorded ones. First runs the programs
/// of its ancestors, each up to the first epoch of its heir. `fingerprint`: that of the run's templates. Returns the
/// exit code of replay(). Throws ConfigError if the templates differ.
[[nodiscard]] int replay_program(comm::Session& session, process::Launcher& launcher, const std::filesystem::path& run,
                                 config::Config config, const std::string& fingerprint,
                                 const std::vector<search::Individual>& lineage);

}  // namespace finch::app
