#include "metrics.hpp"

#include <limits>
#include <set>

namespace finch::report {

std::vector<std::string> metric_names(std::span<const search::Individual* const> individuals) {
    std::set<std::string> names;
    for (const search::Individual* individual : individuals) {
        for (const Metric& one : individual->metrics) {
            names.insert(one.name);
        }
    }
    return {names.begin(), names.end()};
}

std::vector<double> metrics_of(const MetricsByEpoch& metrics, std::int32_t epoch,
                               const std::vector<std::string>& names) {
    std::vector<double> values(names.size(), std::numeric_limits<double>::quiet_NaN());
    const auto known = metrics.find(epoch);
    for (std::size_t i = 0; known != metrics.end() && i < names.size(); ++i) {
        if (const auto value = known->second.find(names[i]); value != known->second.end()) {
            values[i] = value->second;
        }
    }
    return values;
}

}  // namespace finch::report
