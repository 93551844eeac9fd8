#pragma once

#include "finch/config/config.hpp"
#include "finch/config/tree.hpp"
#include "finch/search/gene.hpp"

namespace finch::config {

/// Rewrites a gene with a fixed value, `NAME: value` in search.space, as `NAME: {value: value}`.
void spell_out_fixed_genes(Tree& configuration);

/// Reduces each gene that has a `value` to this value and its conditions. The range or options of a gene with a `value`
/// do not affect the search.
void leave_frozen_values(Tree& space);

/// Reads the complete section `search.space`. Throws ConfigError.
[[nodiscard]] search::Space read_space(const Tree& space);

/// Reads the genes of the first individuals (`first`, `start`) and the `constraints` from the complete section `search`
/// into `config`. All other members of `config` must already be set. Throws ConfigError.
void read_initial_design(const Tree& search, Config& config);

/// Sets the objective and the costs from a list of words: first the loss, then the costs. Throws ConfigError.
void read_objectives(const Tree& written, Config& config);

/// Sets the costs of a program from the list `objectives`: `loss`, then the costs. Throws ConfigError.
void read_program_objectives(const Tree& written, Config& config);

/// Reads the list of `search.limits`. The objective must already be set. Throws ConfigError.
void read_limits(const Tree& written, Config& config);

/// Completes search.inherit with the rungs of search.pruning. Throws ConfigError if heirs have no rungs to begin at, or
/// no training to continue.
void resolve_inherit(const Tree& search, Config& config);

/// Throws ConfigError if there are several objectives and another setting supports only one. `search` is the section
/// with all its defaults.
void check_objectives(const Tree& search, const Config& config);

/// Throws ConfigError if a gene has the name of a command's placeholder, if curve pruning does not know the number of
/// epochs, or if the command cannot be split into words.
void check_command(const CommandObjective& objective, const Config& config, const Tree& search);

}  // namespace finch::config
