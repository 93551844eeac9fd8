#pragma once

#include "finch/data/dataset.hpp"

#include <cstdint>
#include <span>

namespace finch::data {

/// Returns the size in bytes of all pixels of `set`, in memory or on disk.
[[nodiscard]] std::int64_t pixel_bytes(const Dataset& set);

/// Returns a data set with the samples `training` and `validation` of `set`, with pixels in memory. The samples
/// `validation` come last and are marked for validation. Throws StorageError if streamed pixels cannot be read.
[[nodiscard]] Dataset excerpt(const Dataset& set, std::span<const std::int64_t> training,
                              std::span<const std::int64_t> validation);

}  // namespace finch::data
