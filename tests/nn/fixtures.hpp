#pragma once

#include "finch/backend/step_context.hpp"

#include "nn/formula.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace finch::test {

inline constexpr std::int64_t fixture_batch = 16;

/// The images and labels of one state of the fixtures. The pixels are noise: with `everywhere` in the whole image, else
/// in a rectangle at a position that depends on the label.
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

/// The differences between a tensor's gradient and the fixture. They are relative to the scale that the fixture stores
/// for the tensor, mostly its largest entry.
struct Difference {
    double maximum = 0;     ///< of the largest entries, if the scale is the largest entry
    double sampled = 0;     ///< the largest difference of the sampled entries
    double projection = 0;  ///< of the sums with random signs, divided by √entries (estimates the root mean square)
};

/// Reads one tensor from `fixture` and compares it with `grads`. The fixture stores `sampled` entries of each larger
/// tensor.
inline Difference compare(Fixture& fixture, std::uint64_t sampled, std::uint64_t index, std::span<const float> grads) {
    const auto largest = static_cast<double>(fixture.next<float>());
    const auto projection = fixture.next<double>();
    const bool all = grads.size() <= sampled;
    const auto expected = fixture.floats(all ? grads.size() : sampled);

    double our_largest = 0;
    double our_projection = 0;
    for (std::uint64_t i = 0; i < grads.size(); ++i) {
        const auto value = static_cast<double>(grads[i]);
        our_largest = std::max(our_largest, std::abs(value));
        our_projection += (word(Stream::sign, 0, index, i) & 1U) == 1 ? -value : value;
    }
    Difference difference;
    for (std::uint64_t i = 0; i < expected.size(); ++i) {
        const std::uint64_t at = all ? i : word(Stream::index, 0, index, i) % grads.size();
        difference.sampled =
            std::max(difference.sampled, std::abs(static_cast<double>(grads[at] - expected[i])) / largest);
    }
    difference.maximum = std::abs(our_largest - largest) / largest;
    difference.projection =
        std::abs(our_projection - projection) / largest / std::sqrt(static_cast<double>(grads.size()));
    return difference;
}

}  // namespace finch::test
