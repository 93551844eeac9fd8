#pragma once

#include "finch/data/dataset.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace finch::data {

/// The normalisation of each channel: a pixel p becomes (p − mean) / deviation. Pixels that are bytes are first divided
/// by 255.
struct Normalisation {
    std::vector<double> mean;
    std::vector<double> deviation;  ///< 0: the channel never varies
    bool operator==(const Normalisation&) const = default;
};

/// Returns mean and standard deviation (over n, not n − 1) of each channel over all pixels of `samples`. `samples` must
/// not be empty. Updates mean and deviation in float64 by the method of Chan, Golub and LeVeque, image by image in the
/// given order. The result has the same bits on every machine.
[[nodiscard]] Normalisation moments(const Dataset& set, std::span<const std::int64_t> samples);

/// True if load() must compute mean or deviation from the training pixels.
[[nodiscard]] bool needs_moments(const Options& options);

/// Returns mean and deviation of each channel of `set`: the numbers in `options`, or for `auto` the measured values of
/// `set`. A measured deviation of 0 becomes 1. Throws ConfigError if the number of values does not fit the channels, or
/// if `set` has no measured values.
[[nodiscard]] Normalisation normalisation_of(const Options& options, const Dataset& set);

}  // namespace finch::data
