#pragma once

#include "finch/base/named_array.hpp"
#include "finch/data/dataset.hpp"

/// Properties of the training pixels, recorded in a network's file.
namespace finch::data {

/// Records in `arrays` how the training pixels of a network of `options` were represented: their type, the shape of an
/// image, mean and deviation of each channel, and the number of outputs for an image (data/float_pixels, data/shape,
/// data/mean, data/deviation, data/outputs). Replaces records that `arrays` already has.
void record_pixels(NamedArrays& arrays, const Dataset& set, const Options& options);
/// Sets mean and deviation of `set` to the recorded values, for options with `auto`, and the number of classes to the
/// recorded one, if it is larger. Throws ConfigError if the pixels of `set` do not have the recorded type.
void take_recorded_pixels(const NamedArrays& arrays, Dataset& set);

}  // namespace finch::data
