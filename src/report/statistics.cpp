#include "statistics.hpp"

#include "finch/base/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace finch::report {
namespace {

constexpr std::size_t resamples = 1000;

double log_choose(double n, double k) {
    return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

}  // namespace

Interval wilson_interval(std::int64_t events, std::int64_t samples) {
    if (samples <= 0) {
        return {0, 1};
    }
    const auto n = static_cast<double>(samples);
    const double p = static_cast<double>(events) / n;
    const double z2 = normal_quantile * normal_quantile;
    const double centre = (p + z2 / (2 * n)) / (1 + z2 / n);
    const double half = normal_quantile / (1 + z2 / n) * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
    return {events == 0 ? 0 : centre - half, events == samples ? 1 : centre + half};
}

Interval bootstrap_interval(std::span<const double> values) {
    if (values.empty()) {
        return {std::nan(""), std::nan("")};
    }
    RandomStream random(0, Purpose::resampling);
    std::vector<double> means(resamples);
    for (double& mean : means) {
        double sum = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            sum += values[random.below(values.size())];
        }
        mean = sum / static_cast<double>(values.size());
    }
    std::sort(means.begin(), means.end());
    return {means[resamples / 40], means[resamples - 1 - resamples / 40]};
}

double exceedance_probability(std::int64_t beating, std::int64_t draws, std::int64_t reference) {
    const auto n = static_cast<double>(draws);
    const auto m = static_cast<double>(reference);
    double sum = 0;
    for (std::int64_t k = std::max<std::int64_t>(0, beating); k <= draws; ++k) {
        // Of all C(n + m, m) orders of the draws, those in which exactly k further ones come before the reference.
        const auto count = static_cast<double>(k);
        sum += std::exp(log_choose(n - count + m - 1, m - 1) - log_choose(n + m, m));
    }
    return std::min(1.0, sum);
}

double rank_sum_score(std::span<const double> first, std::span<const double> second) {
    std::vector<double> sorted(second.begin(), second.end());
    std::sort(sorted.begin(), sorted.end());
    double larger = 0;  // pairs in which the second is larger; equal ones count half
    for (const double value : first) {
        const auto [begin, end] = std::equal_range(sorted.begin(), sorted.end(), value);
        larger += static_cast<double>(sorted.end() - end) + 0.5 * static_cast<double>(end - begin);
    }
    const auto n = static_cast<double>(first.size());
    const auto m = static_cast<double>(second.size());
    return n * m > 0 ? (larger - n * m / 2) / std::sqrt(n * m * (n + m + 1) / 12) : 0;
}

std::vector<double> ranks_of_sorted(std::span<const double> values) {
    std::vector<double> ranks(values.size());
    for (std::size_t first = 0; first < values.size();) {
        std::size_t last = first;
        while (last + 1 < values.size() && values[last + 1] == values[first]) {
            ++last;
        }
        const double mean =
            static_cast<double>(first + last) / 2 / std::max(1.0, static_cast<double>(values.size()) - 1);
        std::fill(ranks.begin() + static_cast<std::ptrdiff_t>(first),
                  ranks.begin() + static_cast<std::ptrdiff_t>(last) + 1, mean);
        first = last + 1;
    }
    return ranks;
}

double explained_variance(std::span<const double> values, std::span<const int> group, int groups) {
    struct Sums {
        double count = 0;
        double sum = 0;
        double squares = 0;
        void add(double value) {
            ++count;
            sum += value;
            squares += value * value;
        }
        [[nodiscard]] double deviations() const { return count > 0 ? squares - sum * sum / count : 0; }
    };
    Sums all;
    std::vector<Sums> parts(static_cast<std::size_t>(groups));
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (group[i] >= 0) {
            all.add(values[i]);
            parts[static_cast<std::size_t>(group[i])].add(values[i]);
        }
    }
    double within = 0;
    double filled = 0;
    for (const Sums& part : parts) {
        within += part.deviations();
        filled += part.count > 0 ? 1 : 0;
    }
    const double total = all.deviations();
    if (filled < 2 || all.count <= filled || total <= 0) {
        return 0;
    }
    return 1 - (within / (all.count - filled)) / (total / (all.count - 1));
}

}  // namespace finch::report
