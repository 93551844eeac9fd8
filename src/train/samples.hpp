#pragma once

#include "finch/backend/device.hpp"
#include "finch/data/dataset.hpp"

namespace finch::train {

/// The data set as a device reads it. Throws ConfigError if the normalisation does not suit its channels.
[[nodiscard]] backend::Images images_of(const data::Dataset& dataset, const data::Options& options);

/// The same for training, with the augmentation.
[[nodiscard]] backend::Images distorted_images_of(const data::Dataset& dataset, const data::Options& options);

}  // namespace finch::train
