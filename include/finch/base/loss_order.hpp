#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

/// The order of losses. A smaller loss is better. A loss that is not finite (NaN, inf, -inf) is worse than every finite
/// loss, and all losses that are not finite are equal. tests/structure/loss_order.py refuses other comparisons of
/// losses.
namespace finch {

/// Returns a number that operator < sorts in the order of losses: the loss itself if it is finite, otherwise infinity.
[[nodiscard]] inline double orderable_loss(double loss) noexcept {
    return std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
}

/// Returns true if `a` is better than `b`. is_better_loss() is a strict weak order.
[[nodiscard]] inline bool is_better_loss(double a, double b) noexcept {
    return orderable_loss(a) < orderable_loss(b);
}

/// Returns the best of `losses`, or infinity if none is finite.
[[nodiscard]] inline double smallest_loss(std::span<const double> losses) noexcept {
    double best = std::numeric_limits<double>::infinity();
    for (const double loss : losses) {
        best = is_better_loss(loss, best) ? loss : best;
    }
    return best;
}

/// Returns the loss at index `place` after sorting; index 0 is the best loss. `place` must be less than the number of
/// `losses`.
[[nodiscard]] inline double loss_at_place(std::vector<double> losses, std::size_t place) {
    const auto at = losses.begin() + static_cast<std::ptrdiff_t>(place);
    std::nth_element(losses.begin(), at, losses.end(), is_better_loss);
    return orderable_loss(*at);
}

}  // namespace finch
