#pragma once

#include "finch/comm/mpi.hpp"
#include "finch/config/config.hpp"
#include "finch/process/launcher.hpp"
#include "finch/search/individual.hpp"

#include <filesystem>
#include <string>

namespace finch::app {

/// Collective over the world, whose ranks become one worker. Has the program of `config` evaluate `recorded` again, of
/// a run in `run` with templates of `fingerprint`, in a new folder RUN/replays/ID, or ID-2, …. World rank 0 prints what
/// it reports beside what is recorded; the exit code is 0 where they are at most `tolerance` apart, as a share, else 1.
/// Throws ConfigError where the program or its templates are not those of the run.
[[nodiscard]] int replay_program(comm::Session& session, config::Config config, const search::Individual& recorded,
                                 const std::string& fingerprint, const std::filesystem::path& run,
                                 process::Launcher launcher, double tolerance);

}  // namespace finch::app
