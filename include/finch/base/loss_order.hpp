#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

/// The one order of losses: smaller is better, and a loss that is not finite (NaN, inf, -inf) is worse than each finite
/// one. All that are not finite are equal. tests/structure/loss_order.py refuses other comparisons of losses.
namespace finch {

/// A number that < orders like losses: a finite loss itself, else infinity.
[[nodiscard]] inline double orderable_loss(double loss) noexcept {
    return std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
}

/// Whether `a` is better than `b`. A strict weak order.
[[nodiscard]] inline bool is_better_loss(double a, double b) noexcept {
    return orderable_loss(a) < orderable_loss(b);
}

/// The best of `losses`; infinity if none is finite.
[[nodiscard]] inline double smallest_loss(std::span<const double> losses) noexcept {
    double best = std::numeric_limits<double>::infinity();
    for (const double loss : losses) {
        best = is_better_loss(loss, best) ? loss : best;
    }
    return best;
}

/// The loss that has `place` better or equal ones before it; 0 gives the best. `place` is below the number of `losses`.
[[nodiscard]] inline double loss_at_place(std::vector<double> losses, std::size_t place) {
    const auto at = losses.begin() + static_cast<std::ptrdiff_t>(place);
    std::nth_element(losses.begin(), at, losses.end(), is_better_loss);
    return orderable_loss(*at);
}

}  // namespace finch
