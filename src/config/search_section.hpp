#pragma once

#include "finch/config/config.hpp"
#include "finch/config/tree.hpp"
#include "finch/search/gene.hpp"

namespace finch::config {

/// Writes `NAME: value` in search.space as `NAME: {value: value}`: a gene that is fixed.
void spell_out_fixed_genes(Tree& configuration);

/// Reduces each gene with a value to that value and its conditions: the range that it would be searched in does not
/// change the search.
void leave_frozen_values(Tree& space);

/// From the complete `search.space`. Throws ConfigError.
[[nodiscard]] search::Space read_space(const Tree& space);

/// Reads what the run begins with and what its individuals obey (`first`, `start`, `constraints`) from the complete
/// section `search` into `config`, whose other members stand. Throws ConfigError.
void read_initial_design(const Tree& search, Config& config);

/// Sets the objective and the costs beside it from a list of them, the loss first. Throws ConfigError.
void read_objectives(const Tree& written, Config& config);

/// Refuses, where there are costs, what knows one objective alone. `search` is the complete section. Throws
/// ConfigError.
void check_objectives(const Tree& search, const Config& config);

/// Throws ConfigError if a gene has the name of one of the command's own variables, if curve pruning does not know the
/// number of epochs, or if the command cannot be split into words.
void check_command(const CommandObjective& objective, const Config& config, const Tree& search);

}  // namespace finch::config
