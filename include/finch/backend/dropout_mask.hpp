#pragma once

#include "finch/base/philox.hpp"

#include <cstdint>

namespace finch::backend {

/// The dropout mask of one sample. Every value has its own word of random bits; the generator yields four words at a
/// time.
struct DropoutMask {
    PhiloxKey key;          ///< StepScalars::random_key
    std::uint32_t layer;    ///< DropoutShape::layer
    std::uint32_t dropped;  ///< a value is set to 0 if its word is smaller
    float scale;            ///< factor of the values that are kept

    /// Returns the random words of the values 4·block to 4·block + 3. `place` is the sample's index in the batch of the
    /// whole worker.
    [[nodiscard]] FINCH_PORTABLE PhiloxCounter words(std::int64_t place, std::uint32_t block) const {
        return philox({{block, layer, static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32)}},
                      key);
    }
    [[nodiscard]] FINCH_PORTABLE float factor(std::uint32_t word) const { return word < dropped ? 0.0F : scale; }
};

/// Returns a mask without its `key`, which the caller must set.
[[nodiscard]] inline DropoutMask dropout_mask(double rate, std::uint32_t layer) {
    return {.key = {},
            .layer = layer,
            .dropped = static_cast<std::uint32_t>(rate * 4294967296.0),
            .scale = static_cast<float>(1.0 / (1.0 - rate))};
}

}  // namespace finch::backend
