#pragma once

#include "finch/search/individual.hpp"

#include <span>
#include <string>
#include <vector>

namespace finch::report {

/// The names of the metrics that any of them has, in the order of the alphabet.
[[nodiscard]] std::vector<std::string> metric_names(std::span<const search::Individual* const> individuals);

/// The values of `names` in an epoch; NaN if one was not reported.
[[nodiscard]] std::vector<double> metrics_of(const MetricsByEpoch& metrics, std::int32_t epoch,
                                             const std::vector<std::string>& names);

}  // namespace finch::report
