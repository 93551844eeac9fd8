#pragma once

#include "finch/data/dataset.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace finch::data {

/// A pixel p becomes (p − mean) / deviation, p of a byte / 255. One of each per channel.
struct Normalisation {
    std::vector<double> mean;
    std::vector<double> deviation;  ///< 0: the channel never varies
    bool operator==(const Normalisation&) const = default;
};

/// Mean and standard deviation (over n, not n − 1) of every pixel of `samples`, of which there is at least one: in
/// float64, by Chan, Golub and LeVeque's update from image to image in the order given, so that it is the same to the
/// last bit wherever it is computed.
[[nodiscard]] Normalisation moments(const Dataset& set, std::span<const std::int64_t> samples);

/// Whether mean or deviation are those of the pixels that train, which load() computes.
[[nodiscard]] bool needs_moments(const Options& options);

/// Mean and deviation of each channel of `set` by `options`; for `auto` those of the data, a deviation of 0 as 1.
/// Throws ConfigError if their number does not fit, or the data have none.
[[nodiscard]] Normalisation normalisation_of(const Options& options, const Dataset& set);

}  // namespace finch::data
