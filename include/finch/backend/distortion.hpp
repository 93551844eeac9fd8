#pragma once

#include "finch/base/philox.hpp"

#include <cmath>
#include <cstdint>

namespace finch::backend {

/// The source of a pixel of a distorted image: the original image, the rotated image (Distortions::turned()), or none,
/// because the pixel is from outside the image or is cut out.
enum class PixelFrom { image, turned, outside, cut };
struct PixelSource {
    PixelFrom from = PixelFrom::image;
    std::int64_t pixel = 0;  ///< row · width + column, in the image
};

/// The distortion of one image.
struct Distortion {
    std::int32_t down = 0;  ///< rows by which the image is moved
    std::int32_t right = 0;
    std::int32_t is_mirrored = 0;
    std::int32_t cut_row = 0;  ///< centre of the square that is cut out
    std::int32_t cut_column = 0;
    float cosine = 1;  ///< cosine of the rotation angle, counter-clockwise
    float sine = 0;
};

/// Random distortions of training images, applied in this order: mirroring; rotation about the centre by an angle
/// uniform in ±`rotation`, with bilinear interpolation; translation by up to `shift` pixels in each direction
/// (torchvision's RandomCrop with this padding); cutting out a square (Cutout, arXiv 1708.04552). A pixel whose source
/// is outside the image is black. A distortion is a function of the step's random key and of the sample's index in the
/// batch of the whole worker.
struct Distortions {
    std::int32_t shift = 0;
    std::int32_t mirrors = 0;  ///< 1: each image is mirrored left to right with probability 1/2
    std::int32_t cutout = 0;   ///< side of the square, which may extend beyond the image; 0: no square
    std::int32_t height = 0;
    std::int32_t width = 0;
    float rotation = 0;  ///< maximum angle in radians; 0: no rotation

    [[nodiscard]] FINCH_PORTABLE bool any() const { return shift > 0 || mirrors != 0 || cutout > 0 || rotation > 0; }

    [[nodiscard]] FINCH_PORTABLE Distortion of(PhiloxKey key, std::int64_t place) const {
        // Distortions use other Philox counters than dropout.
        constexpr std::uint32_t own = 0xFFFFFFFFU;
        const PhiloxCounter words =
            philox({{own, own, static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32)}}, key);
        const PhiloxCounter cut =
            philox({{own - 1, own, static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32)}}, key);
        Distortion by{.down = below(words.word[0], 2 * shift + 1) - shift,
                      .right = below(words.word[1], 2 * shift + 1) - shift,
                      .is_mirrored = mirrors != 0 ? below(words.word[2], 2) : 0,
                      .cut_row = below(cut.word[0], height),
                      .cut_column = below(cut.word[1], width)};
        if (rotation > 0) {
            const float angle = rotation * 0x1p-31F * static_cast<float>(static_cast<std::int32_t>(words.word[3]));
            by.cosine = std::cos(angle);
            by.sine = std::sin(angle);
        }
        return by;
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
        if (rotation > 0) {
            return {PixelFrom::turned, from_row * width + moved};
        }
        return {PixelFrom::image, mirrored(by, from_row, moved)};
    }

    /// Returns pixel `at` of the rotated image. `value(pixel)` returns a pixel of the original image.
    template <class Value>
    [[nodiscard]] FINCH_PORTABLE float turned(const Distortion& by, std::int64_t at, Value value) const {
        const float middle_row = 0.5F * static_cast<float>(height - 1);
        const float middle_column = 0.5F * static_cast<float>(width - 1);
        const float y = static_cast<float>(at / width) - middle_row;
        const float x = static_cast<float>(at % width) - middle_column;
        const float row = by.cosine * y + by.sine * x + middle_row;
        const float column = by.cosine * x - by.sine * y + middle_column;
        const float top = std::floor(row);
        const float left = std::floor(column);
        float sum = 0;
        for (int corner = 0; corner < 4; ++corner) {
            const auto from_row = static_cast<std::int64_t>(top) + corner / 2;
            const auto from_column = static_cast<std::int64_t>(left) + corner % 2;
            if (from_row >= 0 && from_row < height && from_column >= 0 && from_column < width) {
                const float down = corner / 2 == 0 ? 1 - (row - top) : row - top;
                const float right = corner % 2 == 0 ? 1 - (column - left) : column - left;
                sum += down * right * value(mirrored(by, from_row, from_column));
            }
        }
        return sum;
    }

private:
    [[nodiscard]] FINCH_PORTABLE std::int64_t mirrored(const Distortion& by, std::int64_t row,
                                                       std::int64_t column) const {
        return row * width + (by.is_mirrored != 0 ? width - 1 - column : column);
    }
    /// Returns a number in [0, count), computed from the random bits in `word`.
    [[nodiscard]] FINCH_PORTABLE static std::int32_t below(std::uint32_t word, std::int32_t count) {
        return static_cast<std::int32_t>((static_cast<std::uint64_t>(word) * static_cast<std::uint64_t>(count)) >> 32);
    }
};

}  // namespace finch::backend
