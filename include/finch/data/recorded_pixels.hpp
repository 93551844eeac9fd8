#pragma once

#include "finch/base/named_array.hpp"
#include "finch/data/dataset.hpp"

/// Properties of the training pixels, recorded in a network's file.
namespace finch::data {

/// Records in `arrays` how the training pixels of a network of `options` were represented: their type, and mean and
/// deviation of each channel (data/float_pixels, data/mean, data/deviation). Replaces records that `arrays` already
/// has.
void record_pixels(NamedArrays& arrays, const Dataset& set, const Options& options);
/// Sets mean and deviation of `set` to the recorded values, for options with `auto`. Throws ConfigError if the pixels
/// of `set` do not have the recorded type.
void take_recorded_pixels(const NamedArrays& arrays, Dataset& set);

}  // namespace finch::data
