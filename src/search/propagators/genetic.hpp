#pragma once

#include "finch/search/propagator.hpp"

namespace finch::search {

/// Throws ConfigError where an option is out of its bounds.
[[nodiscard]] std::unique_ptr<Propagator> make(const GeneticOptions& options, const Space& space, std::uint64_t seed);

}  // namespace finch::search
