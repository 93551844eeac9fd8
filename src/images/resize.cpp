#include "finch/images/image.hpp"

#include <algorithm>
#include <cmath>

namespace finch::images {
namespace {

constexpr int precision = 22;  // bits behind the point of a weight

/// Keys, Cubic convolution interpolation for digital image processing, 1981, with a = -0.5.
double cubic(double x) {
    constexpr double a = -0.5;
    x = std::abs(x);
    if (x < 1) {
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    }
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/// The weighted sum of neighbouring pixels that gives one new pixel.
struct Taps {
    std::int64_t first = 0;
    std::vector<std::int32_t> weights{};
};

/// Returns the taps of each of `to` pixels of an axis that had `from` pixels.
std::vector<Taps> taps_of(std::int64_t from, std::int64_t to) {
    const double scale = static_cast<double>(from) / static_cast<double>(to);
    const double stretch = std::max(scale, 1.0);
    const double support = 2 * stretch;
    std::vector<Taps> all;
    for (std::int64_t at = 0; at < to; ++at) {
        const double centre = (static_cast<double>(at) + 0.5) * scale;
        const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - support + 0.5));
        const auto end = std::min(from, static_cast<std::int64_t>(centre + support + 0.5));
        std::vector<double> weights;
        double sum = 0;
        for (std::int64_t pixel = first; pixel < end; ++pixel) {
            weights.push_back(cubic((static_cast<double>(pixel) - centre + 0.5) * (1 / stretch)));
            sum += weights.back();
        }
        Taps taps{.first = first};
        for (const double weight : weights) {
            taps.weights.push_back(static_cast<std::int32_t>(std::round(weight / sum * (1 << precision))));
        }
        all.push_back(std::move(taps));
    }
    return all;
}

/// Returns the weighted sum of pixels that are `stride` bytes apart, rounded and limited to a byte.
std::uint8_t apply(const Taps& taps, const std::uint8_t* pixel, std::int64_t stride) {
    std::int32_t sum = 1 << (precision - 1);
    for (const std::int32_t weight : taps.weights) {
        sum += *pixel * weight;
        pixel += stride;
    }
    return static_cast<std::uint8_t>(std::clamp(sum >> precision, 0, 255));
}

Image resize_rows(const Image& image, std::int64_t width) {
    const std::vector<Taps> all = taps_of(image.width, width);
    Image made{.height = image.height, .width = width, .channels = image.channels, .pixels = {}};
    made.pixels.reserve(static_cast<std::size_t>(made.height * width * made.channels));
    for (std::int64_t y = 0; y < image.height; ++y) {
        for (const Taps& taps : all) {
            const auto* const pixel = image.pixels.data() + (y * image.width + taps.first) * image.channels;
            for (std::int64_t channel = 0; channel < image.channels; ++channel) {
                made.pixels.push_back(apply(taps, pixel + channel, image.channels));
            }
        }
    }
    return made;
}

Image resize_columns(const Image& image, std::int64_t height) {
    const std::int64_t row = image.width * image.channels;
    Image made{.height = height, .width = image.width, .channels = image.channels, .pixels = {}};
    made.pixels.reserve(static_cast<std::size_t>(height * row));
    for (const Taps& taps : taps_of(image.height, height)) {
        for (std::int64_t at = 0; at < row; ++at) {
            made.pixels.push_back(apply(taps, image.pixels.data() + taps.first * row + at, row));
        }
    }
    return made;
}

}  // namespace

Image resize(const Image& image, const Size& size) {
    Image made = image.width == size.width ? image : resize_rows(image, size.width);
    made = made.height == size.height ? std::move(made) : resize_columns(made, size.height);
    made.remark = image.remark;
    return made;
}

}  // namespace finch::images
