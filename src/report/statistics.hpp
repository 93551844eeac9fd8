#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace finch::report {

inline constexpr double normal_quantile = 1.959963984540054;  ///< of 97.5 %

struct Interval {
    double low = 0;
    double high = 0;
};

/// The 95 % score interval of a rate: `events` of `samples` (Wilson, Probable inference, the law of succession, and
/// statistical inference, JASA 22, 1927). [0, 1] without samples.
[[nodiscard]] Interval wilson_interval(std::int64_t events, std::int64_t samples);

/// The 95 % interval of the mean of `values`: percentiles of 1 000 bootstrap means (Efron, Bootstrap methods, Annals of
/// Statistics 7, 1979). The random numbers depend on nothing else, so equal values give equal intervals.
[[nodiscard]] Interval bootstrap_interval(std::span<const double> values);

/// The probability that at least `beating` of `draws` further draws from one continuous distribution are smaller than
/// all of its first `reference` draws (the distribution of exceedances: Gumbel and von Schelling, Annals of
/// Mathematical Statistics 21, 1950). On average draws / (reference + 1) are.
[[nodiscard]] double exceedance_probability(std::int64_t beating, std::int64_t draws, std::int64_t reference);

/// The normal score of the rank sum test: above 1.96 the values of `first` are smaller than those of `second` beyond
/// chance (Mann and Whitney, On a test of whether one of two random variables is stochastically larger than the other,
/// Annals of Mathematical Statistics 18, 1947). Infinity is a value like others; 0 if either is empty.
[[nodiscard]] double rank_sum_score(std::span<const double> first, std::span<const double> second);

/// The ranks of ascending `values` in [0, 1]; equal values share their mean rank.
[[nodiscard]] std::vector<double> ranks_of_sorted(std::span<const double> values);

/// The share of the variance of `values` that the groups' means explain, adjusted for the number of groups (ε²: Kelley,
/// An unbiased correlation ratio measure, PNAS 21, 1935). `group` has an index below `groups` for each value, or -1 for
/// a value to be left out. 0 if fewer than two groups have members or no freedom is left.
[[nodiscard]] double explained_variance(std::span<const double> values, std::span<const int> group, int groups);

}  // namespace finch::report
