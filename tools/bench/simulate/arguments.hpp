#pragma once

#include "finch/search/function.hpp"
#include "finch/search/population.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace finch::simulate {

/// What each evaluation that ended took, in seconds: from its beginning to its end, or, where it was stopped and went
/// on later, its training alone. Not of those that were reused, or failed before they began.
[[nodiscard]] std::vector<double> recorded_seconds(const search::Population& population);

/// "lognormal:60,0.5" (median in seconds, deviation of the logarithm), "constant:60" or "recorded:RUN": as the
/// evaluations of an earlier run, which `seconds_of` tells. Throws ConfigError that names --durations.
[[nodiscard]] search::PretendedDuration parse_durations(
    const std::string& text, const std::function<std::vector<double>(const std::string& run)>& seconds_of);

/// "3", "1..10" (both included), "1,5,9". Throws ConfigError that names --seeds.
[[nodiscard]] std::vector<std::uint64_t> parse_seeds(const std::string& text);

}  // namespace finch::simulate
