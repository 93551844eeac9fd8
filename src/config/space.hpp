#pragma once

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

}  // namespace finch::config
