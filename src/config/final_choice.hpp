#pragma once

#include "finch/config/config.hpp"
#include "finch/config/tree.hpp"

namespace finch::config {

/// Sets `config.final_choice` from the complete section `search`, once its budget and objective are read. Throws
/// ConfigError.
void read_final_choice(const Tree& search, Config& config);

}  // namespace finch::config
