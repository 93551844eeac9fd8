#pragma once

#include <algorithm>
#include <cstdint>
#include <kernel_launch.hpp>

namespace finch::backend::cuda {

/// Returns how many groups of `size` are needed for `count` elements.
[[nodiscard]] constexpr std::int64_t groups_of(std::int64_t count, std::int64_t size) {
    return (count + size - 1) / size;
}

/// Returns the grid for kernels with one element per thread, or with several if there are very many elements.
[[nodiscard]] inline Grid grid_for(std::int64_t elements) {
    return {.blocks_x = std::clamp<std::int64_t>(groups_of(elements, 256), 1, 1 << 20), .threads = 256};
}

}  // namespace finch::backend::cuda
