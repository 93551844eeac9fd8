#pragma once

#include "finch/data/dataset.hpp"

#include <cstdint>
#include <span>

namespace finch::data {

/// Throws ConfigError if the sets are not what Options::expect says.
void check_expected(const Options& options, const Dataset& training, const Dataset& test);

/// Sets as Options::expect says, which must be there, to be planned with: every sample has an answer, none has pixels.
/// A normalisation that is computed is that of pixels which are as often dark as bright. Throws ConfigError if the
/// user sets samples apart and does not say how many.
[[nodiscard]] Datasets stand_in(const Options& options);
[[nodiscard]] bool is_stand_in(const Dataset& set);

/// Bytes of the pixels, wherever they are.
[[nodiscard]] std::int64_t pixel_bytes(const Dataset& set);

/// Some samples of `set` with their pixels in memory, those of `validation` set apart behind the others. Pixels of a
/// stand-in are noise. Throws StorageError if streamed ones cannot be read.
[[nodiscard]] Dataset excerpt(const Dataset& set, std::span<const std::int64_t> training,
                              std::span<const std::int64_t> validation);

}  // namespace finch::data
