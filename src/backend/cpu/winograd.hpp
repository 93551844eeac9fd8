#pragma once

#include "finch/backend/operation.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace finch::backend::cpu {

/// A pass through a convolution with a 3 × 3 kernel and stride 1 on AVX-512: forward, or to the gradient of x. The
/// gradient of x is the same computation with the kernel rotated by 180 degrees. The algorithm is F(2 × 2, 3 × 3) of
/// Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (arXiv 1509.09308): 16 products for 4 outputs
/// instead of 36.
///
/// A tile is 2 × 2 outputs and the 4 × 4 inputs that they depend on. A vector holds up to 16 tiles of one row of the
/// image, so that no lane is idle for any number of channels. The vectors of oneDNN hold channels, so with 10 channels
/// only 10 of 16 lanes work. The input is converted from NHWC to one plane per channel, with even and odd columns
/// separated. The output is converted back to NHWC. Tiles are processed in blocks that stay in the nearest cache.
class WinogradConvolution {
public:
    enum class Direction { forward, to_input_gradient };

    /// True if Finch's kernel runs on this processor and is faster than oneDNN's kernel for this shape. The environment
    /// variable DNNL_MAX_CPU_ISA also limits Finch's own kernels.
    [[nodiscard]] static bool suits(const ConvolutionShape& shape) noexcept;

    WinogradConvolution(const ConvolutionShape& shape, Direction direction);

    /// Returns the size of the transformed weights in floats. The function pack() computes the transformed weights from
    /// the canonical `weights`.
    [[nodiscard]] std::size_t packed_weights() const noexcept;
    void pack(const float* weights, float* packed) const;

    /// In the forward direction, run() reads x from `from` and writes y, after the activation, to `to`. For the
    /// gradient of x, run() reads the gradient before the activation from `from` and writes the gradient of x to `to`,
    /// and `bias` is null. The outputs are bitwise equal for any number of threads.
    void run(const float* from, const float* packed, const float* bias, float* to) const;

private:
    /// Consecutive tiles of one row of tiles. The tiles are in consecutive lanes of one vector.
    struct Segment {
        std::int64_t sample;  ///< index within the group
        std::int64_t row;     ///< row of tiles
        std::int64_t column;  ///< column of the first tile
        std::int64_t count;
        std::int64_t place;  ///< lane of the first tile in the block
    };
    /// Tiles that are processed together.
    struct Block {
        std::vector<Segment> segments;
        std::vector<std::int64_t> places;       ///< (lanes of a block): offset of the first output in `to`, in floats
        std::vector<std::uint32_t> is_written;  ///< (2 × 2): bits of the tiles that have this output
    };
    struct Memory;

    void cut_blocks();
    void run_group(const float* from, std::int64_t samples, const float* packed, const float* bias, float* to,
                   Memory& memory) const;
    void fill_planes(const float* sample, float* planes) const;
    void transform_inputs(const Block& block, std::int64_t samples, Memory& memory) const;
    void write_outputs(const Block& block, std::uint32_t tiles, std::int64_t first, std::int64_t behind, float* to,
                       const Memory& memory) const;

    Direction direction_;
    Activation activation_;
    std::int64_t batch_;
    std::int64_t height_, width_, channels_;              ///< of `from`
    std::int64_t height_out_, width_out_, channels_out_;  ///< of `to`
    std::int64_t padding_;                                ///< above and to the left
    std::int64_t tile_rows_, tile_columns_;
    std::int64_t group_;  ///< samples that share blocks
    std::int64_t row_;    ///< floats of a row of a plane: even columns, then odd ones
    std::int64_t plane_;  ///< floats of a channel's plane
    std::vector<Block> blocks_;
};

}  // namespace finch::backend::cpu
