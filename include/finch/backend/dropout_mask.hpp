#pragma once

#include "finch/base/philox.hpp"

#include <cstdint>

namespace finch::backend {

/// The values of a sample that dropout keeps: a word of random bits for each, four at a time.
struct DropoutMask {
    PhiloxKey key;          ///< StepScalars::random_key
    std::uint32_t layer;    ///< DropoutShape::layer
    std::uint32_t dropped;  ///< a value goes where its word is smaller
    float scale;            ///< of those that stay

    /// Random words of the values 4·block … 4·block + 3 of the sample at `place` in the batch of the whole worker.
    [[nodiscard]] FINCH_PORTABLE PhiloxCounter words(std::int64_t place, std::uint32_t block) const {
        return philox({{block, layer, static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32)}},
                      key);
    }
    [[nodiscard]] FINCH_PORTABLE float factor(std::uint32_t word) const { return word < dropped ? 0.0F : scale; }
};

/// `key` still to be set.
[[nodiscard]] inline DropoutMask dropout_mask(double rate, std::uint32_t layer) {
    return {.key = {},
            .layer = layer,
            .dropped = static_cast<std::uint32_t>(rate * 4294967296.0),
            .scale = static_cast<float>(1.0 / (1.0 - rate))};
}

}  // namespace finch::backend
