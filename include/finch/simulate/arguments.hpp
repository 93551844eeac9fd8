#pragma once

#include "finch/search/function_instance.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace finch::simulate {

/// "lognormal:60,0.5" (median in seconds, deviation of the logarithm) or "constant:60". Throws ConfigError that names
/// --durations.
[[nodiscard]] search::PretendedDuration parse_durations(const std::string& text);

/// "3", "1..10" (both included), "1,5,9". Throws ConfigError that names --seeds.
[[nodiscard]] std::vector<std::uint64_t> parse_seeds(const std::string& text);

}  // namespace finch::simulate
