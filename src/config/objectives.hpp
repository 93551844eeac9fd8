#pragma once

#include "finch/config/config.hpp"
#include "finch/config/tree.hpp"

namespace finch::config {

/// Sets the objective and the costs beside it from a list of them, the loss first. Throws ConfigError.
void read_objectives(const Tree& written, Config& config);

/// Refuses, where there are costs, what knows one objective alone. `search` is the complete section. Throws
/// ConfigError.
void check_objectives(const Tree& search, const Config& config);

/// Refuses genes that are called as something else which a command names, and pruning by a curve of an unknown number
/// of epochs. Throws ConfigError.
void check_command(const CommandObjective& objective, const Config& config, const Tree& search);

}  // namespace finch::config
