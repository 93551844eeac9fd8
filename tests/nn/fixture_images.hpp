#pragma once

#include "finch/backend/step_context.hpp"

#include "formula.hpp"

#include <cstdint>
#include <vector>

namespace finch::test {

inline constexpr std::int64_t fixture_batch = 16;

/// The images of a state of the fixtures, noise in a rectangle that tells the label, or everywhere; and their labels.
struct FixtureImages {
    std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(fixture_batch * 784);
    std::vector<std::int32_t> labels;

    FixtureImages(std::uint64_t state, bool everywhere) {
        for (std::uint64_t i = 0; i < fixture_batch; ++i) {
            const std::uint64_t label = word(Stream::label, state, 0, i) % 10;
            labels.push_back(static_cast<std::int32_t>(label));
            for (std::uint64_t row = 0; row < 28; ++row) {
                for (std::uint64_t column = 0; column < 28; ++column) {
                    const bool inside =
                        row >= 3 + label && row < 15 + label && column >= 6 + i % 4 && column < 16 + i % 4;
                    const std::uint64_t at = i * 784 + row * 28 + column;
                    if (inside || everywhere) {
                        pixels[at] = static_cast<std::uint8_t>(word(Stream::pixel, state, 0, at) & 255U);
                    }
                }
            }
        }
    }

    [[nodiscard]] backend::Images images() const {
        return {.pixels = pixels, .labels = labels, .pixels_per_image = 784, .mean = {0.1307F}, .deviation = {0.3081F}};
    }
};

}  // namespace finch::test
