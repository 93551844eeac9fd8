#pragma once

#include "finch/data/dataset.hpp"
#include "finch/train/recipe.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace finch::train {

/// Returns one weight per class, which multiplies the losses of the samples of this class. An empty result means that
/// all weights are 1. `training` are the indices of the training samples. Throws ConfigError if Options::class_weights
/// has not one weight per class, or if classes are balanced and a class has no training sample.
[[nodiscard]] std::vector<float> class_weights(const Options& options, const data::Dataset& dataset,
                                               std::span<const std::int64_t> training);
/// Returns the sum of the class weights of `samples`, or the number of samples if `weights` is empty.
[[nodiscard]] double weight_of(std::span<const float> weights, const data::Dataset& dataset,
                               std::span<const std::int64_t> samples);

}  // namespace finch::train
