#pragma once

#include "finch/search/function.hpp"
#include "finch/search/population.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace finch::simulate {

/// Returns the duration in seconds of each evaluation that ended: the time from its start to its end. If the evaluation
/// was stopped and resumed, its duration is the training time alone. Reused individuals, and evaluations that failed
/// before they started, are left out.
[[nodiscard]] std::vector<double> recorded_seconds(const search::Population& population);

/// Parses "lognormal:60,0.5" (median in seconds, standard deviation of the logarithm), "constant:60" or "recorded:RUN"
/// (the durations of the evaluations of an earlier run, which `seconds_of` returns). Throws ConfigError that names
/// --durations.
[[nodiscard]] search::PretendedDuration parse_durations(
    const std::string& text, const std::function<std::vector<double>(const std::string& run)>& seconds_of);

/// Parses "3", "1..10" (10 included) or "1,5,9". Throws ConfigError that names --seeds.
[[nodiscard]] std::vector<std::uint64_t> parse_seeds(const std::string& text);

}  // namespace finch::simulate
