// Defined in check_models.cpp.
#pragma once

#include "finch/config/config.hpp"

#include <vector>

namespace finch::config {

/// Genomes that show what networks a space has: its corners, and 1 000 random ones, those of them that obey the
/// constraints. Not all need give a network that can exist.
[[nodiscard]] std::vector<search::Genome> trial_genomes(const Config& config);

/// The recipes of those trial genomes whose values fit together, at least one. Throws ConfigError if there is none.
[[nodiscard]] std::vector<train::Recipe> trial_recipes(const Config& config);

}  // namespace finch::config
