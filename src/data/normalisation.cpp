#include "finch/data/normalisation.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace finch::data {
namespace {

/// The number of pixels of one channel, their mean, and the sum of squared differences from the mean.
struct Moments {
    double count = 0;
    double mean = 0;
    double squares = 0;  ///< sum of the squared differences from the mean

    void merge(const Moments& more) {
        const double all = count + more.count;
        const double difference = more.mean - mean;
        mean += difference * (more.count / all);
        squares += more.squares + difference * difference * (count * (more.count / all));
        count = all;
    }
    /// Returns the standard deviation. The result is exactly 0 if all pixels are equal: the sum of fewer than 2²⁹ equal
    /// floats is exact in a double.
    [[nodiscard]] double deviation() const { return std::sqrt(squares / count); }
};

template <class Pixel>
Moments of_image(const Pixel* first, std::size_t pixels, std::size_t channels) {
    Moments image{.count = static_cast<double>(pixels)};
    for (std::size_t i = 0; i < pixels; ++i) {
        image.mean += static_cast<double>(first[i * channels]);
    }
    image.mean /= image.count;
    for (std::size_t i = 0; i < pixels; ++i) {
        const double difference = static_cast<double>(first[i * channels]) - image.mean;
        image.squares += difference * difference;
    }
    return image;
}

template <class Pixel>
Normalisation moments_of(const Dataset& set, std::span<const std::int64_t> samples, double scale) {
    const auto channels = static_cast<std::size_t>(set.channels);
    const auto size = static_cast<std::size_t>(set.pixels_per_image());
    std::vector<Moments> all(channels);
    visit_pixels(set, samples, [&](std::span<const std::uint8_t> bytes) {
        const auto* const images = reinterpret_cast<const Pixel*>(bytes.data());
        for (std::size_t at = 0; at < bytes.size() / sizeof(Pixel); at += size) {
            for (std::size_t channel = 0; channel < channels; ++channel) {
                all[channel].merge(of_image(images + at + channel, size / channels, channels));
            }
        }
    });
    Normalisation result;
    for (const Moments& channel : all) {
        result.mean.push_back(channel.mean / scale);
        result.deviation.push_back(channel.deviation() / scale);
    }
    return result;
}

std::vector<double> per_channel(const std::vector<double>& said, const Elements<double>& measured,
                                std::int64_t channels, const char* key) {
    const auto count = static_cast<std::size_t>(channels);
    std::vector<double> values = said.empty() ? std::vector<double>(measured.begin(), measured.end()) : said;
    if (values.empty()) {
        throw ConfigError(
            fmt::format("data.normalize.{}: is auto, but these data do not say what trained; accepted: numbers", key));
    }
    if (values.size() == 1) {
        values.resize(count, values.front());
    }
    if (values.size() != count) {
        throw ConfigError(fmt::format(
            "data.normalize.{}: has {} values, but the images have {} channels; expected one value, or one per channel",
            key, values.size(), channels));
    }
    return values;
}

}  // namespace

Normalisation moments(const Dataset& set, std::span<const std::int64_t> samples) {
    return set.float_pixels ? moments_of<float>(set, samples, 1) : moments_of<std::uint8_t>(set, samples, 255);
}

bool needs_moments(const Options& options) {
    return options.mean.empty() || options.deviation.empty();
}

Normalisation normalisation_of(const Options& options, const Dataset& set) {
    Normalisation result{
        .mean = per_channel(options.mean, set.measured_mean, set.channels, "mean"),
        .deviation = per_channel(options.deviation, set.measured_deviation, set.channels, "deviation")};
    if (options.deviation.empty()) {
        // Networks compute with floats, so a deviation below the smallest normal float counts as 0.
        std::replace_if(
            result.deviation.begin(), result.deviation.end(),
            [](double deviation) { return deviation < static_cast<double>(std::numeric_limits<float>::min()); }, 1.0);
    }
    return result;
}

}  // namespace finch::data
