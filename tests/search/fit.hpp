#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <vector>

/// Statistical tests of whether samples follow a distribution.
namespace finch::search {

/// Returns Pearson's χ² of counted values against their probabilities, divided by the critical value at significance
/// 0.001 (quantile approximation by Wilson and Hilferty). A result above 1 rejects the fit. A value without a
/// probability always rejects it.
inline double misfit(const std::map<double, int>& counts, const std::map<double, double>& probabilities) {
    int total = 0;
    for (const auto& [value, count] : counts) {
        total += count;
        if (!probabilities.contains(value)) {
            return 1e9;
        }
    }
    double sum = 0;
    for (const auto& [value, probability] : probabilities) {
        const auto found = counts.find(value);
        const double expected = probability * total;
        const double difference = (found != counts.end() ? found->second : 0) - expected;
        sum += difference * difference / expected;
    }
    constexpr double normal_quantile = 3.0902;
    const auto degrees = static_cast<double>(probabilities.size() - 1);
    const double share = 2 / (9 * degrees);
    return sum / (degrees * std::pow(1 - share + normal_quantile * std::sqrt(share), 3));
}

/// Returns the Kolmogorov-Smirnov distance of `samples` from the uniform distribution on [0, 1], divided by the
/// critical value at significance 0.001.
inline double distance_from_uniform(std::vector<double> samples) {
    std::sort(samples.begin(), samples.end());
    const auto n = static_cast<double>(samples.size());
    double distance = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const auto k = static_cast<double>(i);
        distance = std::max({distance, samples[i] - k / n, (k + 1) / n - samples[i]});
    }
    return distance * std::sqrt(n) / 1.9495;
}

}  // namespace finch::search
