#pragma once

#include "finch/search/individual.hpp"

#include <span>
#include <string>
#include <vector>

namespace finch::report {

/// Returns the names of the metrics that any of `individuals` has, in alphabetical order.
[[nodiscard]] std::vector<std::string> metric_names(std::span<const search::Individual* const> individuals);

/// Returns the values of the metrics `names` in an epoch, or NaN for a metric that was not reported.
[[nodiscard]] std::vector<double> metrics_of(const MetricsByEpoch& metrics, std::int32_t epoch,
                                             const std::vector<std::string>& names);

}  // namespace finch::report
