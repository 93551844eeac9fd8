#include "coordinates.hpp"

#include "normal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace finch::search {
double bounded(double x) {
    const double length = 1 + 2 * bend;
    const double inside = reflect((x + bend) / length) * length - bend;
    const double from_low = inside + bend;
    const double from_high = 1 + bend - inside;
    return inside < bend       ? from_low * from_low / (4 * bend)
           : inside > 1 - bend ? 1 - from_high * from_high / (4 * bend)
                               : inside;
}

double unbounded(double u) {
    return u < bend ? std::sqrt(4 * bend * u) - bend : u > 1 - bend ? 1 + bend - std::sqrt(4 * bend * (1 - u)) : u;
}

Thresholds thresholds_of(const Space& space, const std::vector<std::size_t>& which) {
    constexpr double most_values = 10'000;  // a gene with more values is treated as real
    Thresholds all;
    for (const std::size_t i : which) {
        std::vector<double> thresholds;
        const Gene& gene = space.genes[i];
        const auto count = value_count(gene);
        if (count && static_cast<double>(*count) <= most_values) {
            const auto* whole = std::get_if<IntGene>(&gene.kind);
            for (std::uint64_t k = 1; k < *count; ++k) {
                thresholds.push_back(
                    whole != nullptr && whole->scale == Scale::log
                        ? to_unit(gene, static_cast<double>(whole->low) +
                                            (static_cast<double>(k) - 0.5) * static_cast<double>(whole->step))
                        : static_cast<double>(k) / static_cast<double>(*count));
            }
        }
        all.push_back(std::move(thresholds));
    }
    return all;
}

Cell cell_at(const std::vector<double>& thresholds, double u) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (std::isnan(u)) {
        return {-infinity, infinity};
    }
    if (thresholds.empty()) {
        return {u, u};
    }
    const auto above = std::upper_bound(thresholds.begin(), thresholds.end(), u);
    return {above == thresholds.begin() ? -infinity : *std::prev(above), above == thresholds.end() ? infinity : *above};
}

void keep_margin(const std::vector<double>& thresholds, double deviation, double alpha, double& mean, double& extent) {
    if (thresholds.empty()) {
        return;
    }
    const Cell cell = cell_at(thresholds, mean);
    const double spread = extent * deviation;
    if (!std::isfinite(cell.low) || !std::isfinite(cell.high)) {
        const double threshold = std::isfinite(cell.low) ? cell.low : cell.high;
        const double most = spread * normal_quantile(1 - alpha);
        mean = threshold + std::clamp(mean - threshold, -most, most);
        return;
    }
    const double least = alpha / 2;
    const double below = normal_share((cell.low - mean) / spread);
    const double above = normal_share((mean - cell.high) / spread);
    if (below >= least && above >= least) {
        return;
    }
    // If the probability of one side is raised to `least`, the middle and the other side lose the added probability.
    const double middle = 1 - below - above;
    const double low = std::max(below, least);
    const double high = std::max(above, least);
    const double given = (1 - low - high - middle) / (low + high + middle - 3 * least);
    const double to_low = -normal_quantile(low + given * (low - least));
    const double to_high = -normal_quantile(high + given * (high - least));
    extent = (cell.high - cell.low) / ((to_low + to_high) * deviation);
    mean = (cell.low * to_high + cell.high * to_low) / (to_low + to_high);
}

}  // namespace finch::search
