#pragma once

#include "finch/data/dataset.hpp"
#include "finch/train/recipe.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace finch::train {

/// A weight for each class, by which the losses of its samples are multiplied; empty: all 1. `training`: the samples
/// that train. Throws ConfigError if their number is not the classes', or a class has no sample to be balanced with.
[[nodiscard]] std::vector<float> class_weights(const Options& options, const data::Dataset& dataset,
                                               std::span<const std::int64_t> training);
/// The sum of the weights of some samples: their number where `weights` is empty.
[[nodiscard]] double weight_of(std::span<const float> weights, const data::Dataset& dataset,
                               std::span<const std::int64_t> samples);

}  // namespace finch::train
