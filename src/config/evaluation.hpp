#pragma once

#include "finch/config/tree.hpp"

namespace finch::config {

/// `training`, complete, with the rate that `auto` means, where no gene chooses the optimizer.
void resolve_learning_rate(Tree& training);

/// The part of a complete configuration that says how an individual is evaluated: data (but its path), model, training
/// and search.objective, genes as they stand there.
[[nodiscard]] Tree evaluation_part(const Tree& all);

}  // namespace finch::config
