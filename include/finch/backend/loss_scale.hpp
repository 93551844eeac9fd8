#pragma once

#include "finch/backend/optimizer.hpp"
#include "finch/base/portable.hpp"

#include <cmath>
#include <cstdint>

namespace finch::backend {

/// Dynamic loss scaling, for products in numbers of a narrow range: torch.cuda.amp.GradScaler with its defaults. The
/// gradient of the loss is multiplied by `scale`, so that small gradients are not rounded to 0. A step whose gradients
/// are not all finite is skipped (it changes neither weights nor optimizer nor average) and halves the scale; 2000
/// others in a row double it. One rule for all backends; all scales are powers of two, so scaling rounds nothing.
struct LossScale {
    float scale = 1;
    std::int32_t good_steps = 0;  ///< in a row, since the scale changed last
    std::int64_t skipped = 0;     ///< steps so far
    std::int32_t skips = 0;       ///< 1: the present step is skipped
    /// 1: the steps so far, all of them skipped, have left the copy with which an average begins to the next good one.
    std::int32_t average_waits = 0;
    bool operator==(const LossScale&) const = default;

    static constexpr float first_scale = 65536;
    static constexpr std::int32_t growth_interval = 2000;
    /// More serves no number of float16, and its inverse is to stay a normal one.
    static constexpr float most_scale = 4294967296.0F;
    /// Below it, gradients that overflow are beyond 1e9: the training has diverged.
    static constexpr float least_scale = 0x1p-14F;

    /// The loss scale at the beginning of a training in float16.
    [[nodiscard]] static LossScale initial() { return {.scale = first_scale}; }
    /// It stays so: all further steps are skipped.
    [[nodiscard]] FINCH_PORTABLE bool is_exhausted() const { return scale < least_scale; }

    /// The present step's gradients are known: whether they all are finite decides on the step, and on later scales.
    /// `numbers` and `average_share` are the step's own, and become those of the steps that were not skipped.
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
