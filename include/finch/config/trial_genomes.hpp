// The functions of this header are defined in check_models.cpp.
#pragma once

#include "finch/config/config.hpp"

#include <vector>

namespace finch::config {

/// Returns sample genomes that obey the constraints: the corners of the search space, and 1 000 random genomes. Some of
/// these genomes may not give a valid network.
[[nodiscard]] std::vector<search::Genome> trial_genomes(const Config& config);

/// Returns the recipes of the trial genomes, except genomes with incompatible values. Throws ConfigError if no genome
/// gives a recipe.
[[nodiscard]] std::vector<train::Recipe> trial_recipes(const Config& config);

}  // namespace finch::config
