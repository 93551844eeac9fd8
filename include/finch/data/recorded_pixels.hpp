#pragma once

#include "finch/base/named_array.hpp"
#include "finch/data/dataset.hpp"

/// Properties of the pixels that a network was trained on, in its file.
namespace finch::data {

/// Notes in `arrays` what a network of `options` was shown of its training set's pixels: whether they are floats, and
/// mean and deviation of each channel (data/float_pixels, data/mean, data/deviation), in place of what was noted
/// before.
void record_pixels(NamedArrays& arrays, const Dataset& set, const Options& options);
/// Gives `set` that mean and deviation, for options that say auto. Throws ConfigError if its pixels are of another
/// kind.
void take_recorded_pixels(const NamedArrays& arrays, Dataset& set);

}  // namespace finch::data
