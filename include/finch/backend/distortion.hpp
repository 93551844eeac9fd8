#pragma once

#include "finch/base/philox.hpp"

#include <cstdint>

namespace finch::backend {

/// Where a pixel of a distorted image comes from.
enum class PixelFrom { image, outside, cut };
struct PixelSource {
    PixelFrom from = PixelFrom::image;
    std::int64_t pixel = 0;  ///< row · width + column, of the image
};

/// What is done to one image.
struct Distortion {
    std::int32_t down = 0;  ///< rows by which it is moved
    std::int32_t right = 0;
    std::int32_t is_mirrored = 0;
    std::int32_t cut_row = 0;  ///< the middle of what is cut out
    std::int32_t cut_column = 0;
};

/// Distortions of training images: moved by up to `shift` pixels each way (torchvision's RandomCrop with so much
/// padding), mirrored or not, a square cut out (Cutout, arXiv 1708.04552). A function of the step's random key and of
/// the sample's place in the batch of the whole worker.
struct Distortions {
    std::int32_t shift = 0;
    std::int32_t mirrors = 0;  ///< 1: half of the images are mirrored left to right
    std::int32_t cutout = 0;   ///< side of the square, which may reach beyond the image; 0: none
    std::int32_t height = 0;
    std::int32_t width = 0;

    [[nodiscard]] FINCH_PORTABLE bool any() const { return shift > 0 || mirrors != 0 || cutout > 0; }

    [[nodiscard]] FINCH_PORTABLE Distortion of(PhiloxKey key, std::int64_t place) const {
        // Dropout's counters begin with other words.
        constexpr std::uint32_t own = 0xFFFFFFFFU;
        const PhiloxCounter words =
            philox({{own, own, static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32)}}, key);
        const PhiloxCounter cut =
            philox({{own - 1, own, static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32)}}, key);
        return {.down = below(words.word[0], 2 * shift + 1) - shift,
                .right = below(words.word[1], 2 * shift + 1) - shift,
                .is_mirrored = mirrors != 0 ? below(words.word[2], 2) : 0,
                .cut_row = below(cut.word[0], height),
                .cut_column = below(cut.word[1], width)};
    }

    [[nodiscard]] FINCH_PORTABLE PixelSource source(const Distortion& by, std::int64_t row, std::int64_t column) const {
        const std::int64_t top = by.cut_row - cutout / 2;
        const std::int64_t left = by.cut_column - cutout / 2;
        if (row >= top && row < top + cutout && column >= left && column < left + cutout) {
            return {PixelFrom::cut, 0};
        }
        const std::int64_t from_row = row - by.down;
        const std::int64_t moved = column - by.right;
        if (from_row < 0 || from_row >= height || moved < 0 || moved >= width) {
            return {PixelFrom::outside, 0};
        }
        return {PixelFrom::image, from_row * width + (by.is_mirrored != 0 ? width - 1 - moved : moved)};
    }

private:
    /// A number in [0, count).
    [[nodiscard]] FINCH_PORTABLE static std::int32_t below(std::uint32_t word, std::int32_t count) {
        return static_cast<std::int32_t>((static_cast<std::uint64_t>(word) * static_cast<std::uint64_t>(count)) >> 32);
    }
};

}  // namespace finch::backend
