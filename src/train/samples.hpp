#pragma once

#include "finch/backend/device.hpp"
#include "finch/data/dataset.hpp"

namespace finch::train {

/// Returns the data set in the form that a device reads. Throws ConfigError if the normalisation does not fit the
/// number of channels.
[[nodiscard]] backend::Images images_of(const data::Dataset& dataset, const data::Options& options);

/// Returns the same as images_of(), with the augmentation of training images.
[[nodiscard]] backend::Images distorted_images_of(const data::Dataset& dataset, const data::Options& options);

}  // namespace finch::train
