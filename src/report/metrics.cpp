#include "metrics.hpp"

#include <algorithm>
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

double metric(const search::Individual& individual, const std::string& name, std::int32_t epoch) {
    const auto found = std::find_if(individual.metrics.begin(), individual.metrics.end(),
                                    [&](const Metric& one) { return one.epoch == epoch && one.name == name; });
    return found != individual.metrics.end() ? found->value : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace finch::report
