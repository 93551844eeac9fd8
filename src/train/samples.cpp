#include "samples.hpp"

#include "finch/data/normalisation.hpp"

#include <algorithm>
#include <iterator>
#include <numbers>
#include <vector>

namespace finch::train {
namespace {

std::vector<float> to_floats(const std::vector<double>& values) {
    std::vector<float> floats;
    std::transform(values.begin(), values.end(), std::back_inserter(floats),
                   [](double value) { return static_cast<float>(value); });
    return floats;
}

}  // namespace

backend::Images images_of(const data::Dataset& dataset, const data::Options& options) {
    const data::Normalisation normalisation = data::normalisation_of(options, dataset);
    return {.pixels = dataset.pixels,
            .labels = dataset.labels,
            .targets = dataset.targets,
            .pixels_per_image = dataset.pixels_per_image(),
            .target_size = dataset.target_size,
            .float_pixels = dataset.float_pixels,
            .mean = to_floats(normalisation.mean),
            .deviation = to_floats(normalisation.deviation),
            .store = dataset.store,
            .prefetch = options.prefetch};
}

backend::Images distorted_images_of(const data::Dataset& dataset, const data::Options& options) {
    backend::Images images = images_of(dataset, options);
    const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
    images.distortions = {.shift = narrow(options.augmentation.shift),
                          .mirrors = options.augmentation.mirror ? 1 : 0,
                          .cutout = narrow(options.augmentation.cutout),
                          .height = narrow(dataset.height),
                          .width = narrow(dataset.width),
                          .rotation = static_cast<float>(options.augmentation.rotation * std::numbers::pi / 180)};
    return images;
}

}  // namespace finch::train
