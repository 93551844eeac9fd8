#pragma once

#include "finch/config/config.hpp"
#include "finch/config/tree.hpp"

namespace finch::config {

/// Sets the objective and the costs beside it from a list of them, the loss first. Throws ConfigError.
void read_objectives(const Tree& written, Config& config);

/// Refuses, where there are costs, what knows one objective alone. `search` is the complete section. Throws
/// ConfigError.
void check_objectives(const Tree& search, const Config& config);

}  // namespace finch::config
