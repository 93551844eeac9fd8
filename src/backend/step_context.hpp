#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace finch::backend {

/// How many samples of each step's batch are no padding. `indices` (steps, batch). Throws Error where their number is
/// wrong, there are more than `capacity` steps, or padding does not stand at the end of its batch.
[[nodiscard]] std::vector<std::int64_t> real_samples(std::span<const std::int64_t> indices, std::size_t steps,
                                                     std::size_t batch, std::int64_t capacity);

}  // namespace finch::backend
