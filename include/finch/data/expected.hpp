#pragma once

#include "finch/data/dataset.hpp"

#include <cstdint>
#include <span>

namespace finch::data {

/// Throws ConfigError if the training or test set does not have the properties in Options::expect.
void check_expected(const Options& options, const Dataset& training, const Dataset& test);

/// Returns stand-ins for data sets, for `finch plan`, with the properties in Options::expect. Options::expect must be
/// set. Every sample has a label or target, but no pixels. For `normalize: auto`, mean and deviation are 0.5, as if
/// half of the pixels were black and half white. Throws ConfigError if the user sets validation samples apart but
/// data.expect.validation is missing.
[[nodiscard]] Datasets stand_in(const Options& options);
[[nodiscard]] bool is_stand_in(const Dataset& set);

/// Returns the size in bytes of all pixels of `set`, in memory or on disk.
[[nodiscard]] std::int64_t pixel_bytes(const Dataset& set);

/// Returns a data set with the samples `training` and `validation` of `set`, with pixels in memory. The samples
/// `validation` come last and are marked for validation. If `set` is a stand-in, the pixels are noise. Throws
/// StorageError if streamed pixels cannot be read.
[[nodiscard]] Dataset excerpt(const Dataset& set, std::span<const std::int64_t> training,
                              std::span<const std::int64_t> validation);

}  // namespace finch::data
