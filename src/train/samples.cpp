#include "samples.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <cstddef>

namespace finch::train {
namespace {

std::vector<float> per_channel(const std::vector<double>& values, std::int64_t channels, const char* what) {
    if (values.size() != 1 && values.size() != static_cast<std::size_t>(channels)) {
        throw ConfigError(
            fmt::format("data.normalize.{} has {} values for images of {} channels; give one, or one per "
                        "channel",
                        what, values.size(), channels));
    }
    std::vector<float> result;
    for (std::int64_t channel = 0; channel < channels; ++channel) {
        const std::size_t index = values.size() == 1 ? 0 : static_cast<std::size_t>(channel);
        result.push_back(static_cast<float>(values[index]));
    }
    return result;
}

}  // namespace

backend::Images images_of(const data::Dataset& dataset, const data::Options& normalisation) {
    return {.pixels = dataset.pixels,
            .labels = dataset.labels,
            .targets = dataset.targets,
            .pixels_per_image = dataset.pixels_per_image(),
            .target_size = dataset.target_size,
            .float_pixels = dataset.float_pixels,
            .mean = per_channel(normalisation.mean, dataset.channels, "mean"),
            .deviation = per_channel(normalisation.deviation, dataset.channels, "deviation"),
            .store = dataset.store,
            .prefetch = normalisation.prefetch};
}

backend::Images distorted_images_of(const data::Dataset& dataset, const data::Options& options) {
    backend::Images images = images_of(dataset, options);
    const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
    images.distortions = {.shift = narrow(options.augmentation.shift),
                          .mirrors = options.augmentation.mirror ? 1 : 0,
                          .cutout = narrow(options.augmentation.cutout),
                          .height = narrow(dataset.height),
                          .width = narrow(dataset.width)};
    return images;
}

}  // namespace finch::train
