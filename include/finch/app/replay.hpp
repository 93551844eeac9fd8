#pragma once

#include "finch/comm/mpi.hpp"

#include <filesystem>
#include <string>

namespace finch::app {

/// Collective over the world, whose ranks become one worker. Trains the individual `id` of the run in `run` again,
/// alone, and compares each epoch with what is recorded. Returns 0 if all that the same number of ranks trained is
/// equal to the last bit, 1 if it is not or there is no such epoch. Throws ConfigError if there is no such
/// individual, or the run trains no networks.
[[nodiscard]] int replay(comm::Session& session, const std::filesystem::path& run, const std::string& id);

}  // namespace finch::app
