#pragma once

#include "finch/base/named_array.hpp"
#include "finch/data/dataset.hpp"
#include "finch/data/normalisation.hpp"

#include <cstdint>

/// Properties of the training pixels, recorded in a network's file.
namespace finch::data {

/// Records in `arrays` how the training pixels of a network of `options` were represented: their type, the shape of an
/// image, mean and deviation of each channel, and the number of outputs for an image (data/float_pixels, data/shape,
/// data/mean, data/deviation, data/outputs). Replaces records that `arrays` already has.
void record_pixels(NamedArrays& arrays, const Dataset& set, const Options& options);
/// Sets mean and deviation of `set` to the recorded values, for options with `auto`, and the number of classes to the
/// recorded one, if it is larger. Throws ConfigError if the pixels of `set` do not have the recorded type.
void take_recorded_pixels(const NamedArrays& arrays, Dataset& set);

/// The images that a network was trained with, as record_pixels() recorded them.
struct RecordedImages {
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::int64_t channels = 0;
    std::int64_t outputs = 0;
    bool float_pixels = false;
    Normalisation normalisation{};
};
/// Throws FileError if a record is missing or damaged.
[[nodiscard]] RecordedImages recorded_images(const NamedArrays& arrays);

}  // namespace finch::data
