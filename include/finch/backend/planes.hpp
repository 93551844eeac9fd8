#pragma once

#include <cstdint>

namespace finch::backend {

/// How the values of a tensor lie in memory. `planes` is a layout of the CPU backend for convolutions with few
/// channels: each channel lies in planes of its own, with the padding of the next 3 × 3 convolution.
enum class Layout { nhwc, planes };

/// The type of a tensor's numbers in memory.
enum class TensorType { float32, bfloat16, float16 };

/// The sizes of an image in planes. One plane holds the pixels of one parity of row and column of the padded image. A
/// tile is 2 × 2 pixels. One column of tiles per row is idle: its pixels are the padding at the left of the next row.
struct PlanesSize {
    std::int64_t rows, pitch;  ///< of tiles
    std::int64_t tiles;
    std::int64_t plane;  ///< floats: an odd number of cache lines, so that planes do not share a set of the cache

    static constexpr std::int64_t block = 32;  ///< tiles that are computed together, at most
    static constexpr std::int64_t line = 16;   ///< floats of a cache line

    constexpr PlanesSize(std::int64_t height, std::int64_t width)
        : rows((height + 1) / 2),
          pitch((width + 1) / 2 + 1),
          tiles(rows * pitch),
          plane((((tiles + block - 1) / block * block + pitch + 1 + line - 1) / line | 1) * line) {}
    [[nodiscard]] constexpr std::int64_t floats_per_channel() const { return 4 * plane; }
};

}  // namespace finch::backend
