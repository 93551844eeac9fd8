#pragma once

#include "finch/base/random.hpp"

namespace finch::search {

/// Returns the cumulative distribution function of the standard normal distribution at `x`.
[[nodiscard]] double normal_share(double x);
/// Returns the inverse of normal_share() for shares in (0, 1), by bisection to about 1e-12. Returns ±8 for quantiles
/// beyond ±8, because a double cannot resolve them.
[[nodiscard]] double normal_quantile(double share);
/// Draws from the standard normal distribution truncated to [low, high]; each bound may be infinite. If the interval is
/// more than 8 deviations away, returns its nearest bound.
[[nodiscard]] double truncated_normal(double low, double high, RandomStream& random);

}  // namespace finch::search
