#include "normal.hpp"

#include <algorithm>
#include <cmath>

namespace finch::search {

double normal_share(double x) {
    return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

double normal_quantile(double share) {
    double low = -8;
    double high = 8;
    for (int i = 0; i < 44; ++i) {
        const double middle = (low + high) / 2;
        (normal_share(middle) < share ? low : high) = middle;
    }
    return (low + high) / 2;
}

double truncated_normal(double low, double high, RandomStream& random) {
    if (low > 0) {  // normal_share() is less exact near 1
        return -truncated_normal(-high, -low, random);
    }
    const double below = normal_share(low);
    const double share = below + random.uniform() * (normal_share(high) - below);
    return std::clamp(normal_quantile(share), low, high);
}

}  // namespace finch::search
