#pragma once

#include "finch/base/random.hpp"

namespace finch::search {

/// Of the standard normal distribution: the share below `x`.
[[nodiscard]] double normal_share(double x);
/// Its inverse for shares in (0, 1), by bisection to some 1e-12; beyond ±8, which a double cannot tell apart, ±8.
[[nodiscard]] double normal_quantile(double share);
/// Drawn where it lies in [low, high]; either may be infinite. Beyond 8 deviations the nearest bound.
[[nodiscard]] double truncated_normal(double low, double high, RandomStream& random);

}  // namespace finch::search
