#pragma once

#include "finch/backend/operation.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace finch::backend::cpu {

/// A pass through a convolution with a kernel of 3 × 3 and a stride of 1 on AVX-512, forward or to the gradient of x,
/// which is the same with the kernel turned round: F(2 × 2, 3 × 3) of Lavin and Gray, "Fast Algorithms for
/// Convolutional Neural Networks" (arXiv 1509.09308), 16 products for 4 outputs in place of 36.
///
/// A tile is 2 × 2 outputs and the 4 × 4 inputs that they see. Along a vector lie tiles, up to 16 of a row of the
/// image, so that no lane is idle whatever the number of channels: oneDNN lays channels there, and 10 of 16 lanes
/// work. NHWC is turned into planes by channel on the way in, even and odd columns apart, and back on the way out.
/// Tiles go through all of it by blocks that stay in the nearest cache.
class WinogradConvolution {
public:
    enum class Direction { forward, to_input_gradient };

    /// Whether this processor can do it, and does it faster than oneDNN for such a shape. What oneDNN's own
    /// DNNL_MAX_CPU_ISA forbids is not done here either.
    [[nodiscard]] static bool suits(const ConvolutionShape& shape) noexcept;

    WinogradConvolution(const ConvolutionShape& shape, Direction direction);

    /// Floats of the transformed weights, and their making from `weights`, canonical.
    [[nodiscard]] std::size_t packed_weights() const noexcept;
    void pack(const float* weights, float* packed) const;

    /// Forward: `from` is x, `to` is y, with the activation. To the gradient of x: `from` is the gradient before the
    /// activation, `to` that of x; there is no `bias`. Each output has the same bits whatever the number of threads.
    void run(const float* from, const float* packed, const float* bias, float* to) const;

private:
    /// Consecutive tiles of one row of tiles, which lie along one vector.
    struct Segment {
        std::int64_t sample;  ///< within the group
        std::int64_t row;     ///< of tiles
        std::int64_t column;  ///< of its first tile
        std::int64_t count;
        std::int64_t place;  ///< of its first tile in the block
    };
    /// Tiles that are treated together.
    struct Block {
        std::vector<Segment> segments;
        std::vector<std::int64_t> places;       ///< (lanes of a block) of each tile's first output in `to`, in floats
        std::vector<std::uint32_t> is_written;  ///< (2 × 2) bits of the tiles that have such an output
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
