#pragma once

#include "finch/search/individual.hpp"

#include <span>
#include <string>
#include <vector>

namespace finch::report {

/// The names of the metrics that any of them has, in the order of the alphabet.
[[nodiscard]] std::vector<std::string> metric_names(std::span<const search::Individual* const> individuals);

/// A metric of an epoch; NaN where it was not reported.
[[nodiscard]] double metric(const search::Individual& individual, const std::string& name, std::int32_t epoch);

}  // namespace finch::report
