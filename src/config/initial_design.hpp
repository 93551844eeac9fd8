#pragma once

#include "finch/config/config.hpp"
#include "finch/config/tree.hpp"

namespace finch::config {

/// Reads what the run begins with and what its individuals obey (`first`, `start`, `constraints`) from the complete
/// section `search` into `config`, whose other members stand. Throws ConfigError.
void read_initial_design(const Tree& search, Config& config);

}  // namespace finch::config
