#pragma once

#include "finch/backend/optimizer.hpp"
#include "finch/base/portable.hpp"

#include <cmath>
#include <cstdint>

namespace finch::backend {

/// Dynamic loss scaling for number formats of narrow range, as in torch.cuda.amp.GradScaler with its default options.
/// The gradient of the loss is multiplied by `scale`, so that small gradients are not rounded to 0. A step is skipped
/// if any gradient is not finite. A skipped step changes neither weights nor optimizer nor average, and halves the
/// scale. After 2000 consecutive steps without a skip the scale is doubled. All backends use the rule in decide(). All
/// scales are powers of two, so scaling does not round.
struct LossScale {
    float scale = 1;
    std::int32_t good_steps = 0;  ///< consecutive, since the scale last changed
    std::int64_t skipped = 0;     ///< skipped steps so far
    std::int32_t skips = 0;       ///< 1: the current step is skipped
    /// 1 if the step that should have started the average with a copy of the weights was skipped. The next step that is
    /// not skipped starts the average.
    std::int32_t average_waits = 0;
    bool operator==(const LossScale&) const = default;

    static constexpr float first_scale = 65536;
    static constexpr std::int32_t growth_interval = 2000;
    /// The maximum. A larger scale does not help any float16 number, and 1 / scale must remain a normal number.
    static constexpr float most_scale = 4294967296.0F;
    /// The minimum. Gradients that overflow at an even smaller scale exceed 1e9, so the training has diverged.
    static constexpr float least_scale = 0x1p-14F;

    /// Returns the loss scale at the beginning of a training in float16.
    [[nodiscard]] static LossScale initial() { return {.scale = first_scale}; }
    /// True if the scale has fallen below least_scale. If is_exhausted() returns true, the scale no longer changes, and
    /// all further steps are skipped.
    [[nodiscard]] FINCH_PORTABLE bool is_exhausted() const { return scale < least_scale; }

    /// Decides whether the current step is skipped, and updates the scale for later steps. `all_finite` is true if all
    /// gradients of the step are finite. If the step is not skipped, decide() applies without_skipped() to `numbers`,
    /// and sets `average_share` to 1 if `average_waits` is 1.
    FINCH_PORTABLE void decide(bool all_finite, OptimizerScalars& numbers, float& average_share) {
        skips = !all_finite || is_exhausted() ? 1 : 0;
        if (skips != 0) {
            scale = is_exhausted() ? scale : 0.5F * scale;
            good_steps = 0;
            ++skipped;
            average_waits = average_waits != 0 || average_share == 1 ? 1 : 0;
            return;
        }
        if (++good_steps == growth_interval) {
            scale = scale < most_scale ? 2 * scale : scale;
            good_steps = 0;
        }
        numbers = without_skipped(numbers, skipped);
        average_share = average_waits != 0 ? 1 : average_share;
        average_waits = 0;
    }
};

}  // namespace finch::backend
