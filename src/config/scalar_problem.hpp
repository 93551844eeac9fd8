#pragma once

#include "finch/config/schema.hpp"

#include <optional>
#include <string>

namespace finch::config {

/// Describes why `domain` does not accept the scalar `tree`, as the end of a sentence: "is out of range". Returns
/// nothing if the domain accepts it.
[[nodiscard]] std::optional<std::string> problem_of(const Tree& tree, const Domain& domain);

}  // namespace finch::config
