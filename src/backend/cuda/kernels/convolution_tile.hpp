#pragma once

#include "finch/backend/operation.hpp"

#include "kernels/elementwise.hpp"

#include <cstddef>
#include <cstdint>
#include <kernel_launch.hpp>

// The common code of the direct convolution kernels. A block computes a band of rows of one sample. The block's inputs
// are in shared memory as planes (channel, row, column), including padding, so that neighbouring lanes read
// neighbouring words.
namespace finch::backend::cuda {

/// The sizes of a stride-1 convolution that reads (batch, height, width, channels) and writes (batch, height_out,
/// width_out, channels_out), NHWC. A convolution of the same form computes the gradient of the input from the gradient
/// of the output.
struct ConvolutionSizes {
    int height;
    int width;
    int channels;
    int height_out;
    int width_out;
    int channels_out;
    int padding;  ///< rows above and columns left of the input
};

/// Lengths in shared memory, in floats.
struct TileSizes {
    int rows;   ///< rows that the block writes; it reads rows + kernel − 1
    int pitch;  ///< from row to row; a multiple of 4
    int plane;  ///< from channel to channel; an odd multiple of 4, so that channels are in different banks
};

inline TileSizes tile_sizes(int rows, int columns, int kernel) {
    const int pitch = (columns + 3) / 4 * 4;
    const int plane = (rows + kernel - 1) * pitch;
    return {.rows = rows, .pitch = pitch, .plane = plane % 8 == 0 ? plane + 4 : plane};
}

/// Fills the tile with rows that begin at `first_row` − padding. Positions outside the image become zero. If `slope_of`
/// is not null, the input is a gradient, and each value is multiplied by the activation's derivative at `slope_of`. All
/// threads of the block must call load_tile() and then sync().
template <class Thread>
FINCH_DEVICE void load_tile(const Thread& thread, const ConvolutionSizes& sizes, const TileSizes& tile, int tile_rows,
                            const float* image, const float* slope_of, Activation activation, int first_row,
                            float* shared) {
    const int row_floats = tile.pitch * sizes.channels;
    for (int i = thread.index(); i < tile_rows * row_floats; i += thread.count()) {
        const int tile_row = i / row_floats;
        const int column = i % row_floats / sizes.channels;
        const int channel = i % sizes.channels;
        const int row = first_row + tile_row - sizes.padding;
        const int x = column - sizes.padding;
        float value = 0.0F;
        if (row >= 0 && row < sizes.height && x >= 0 && x < sizes.width) {
            const std::size_t at =
                (static_cast<std::size_t>(row) * static_cast<std::size_t>(sizes.width) + static_cast<std::size_t>(x)) *
                    static_cast<std::size_t>(sizes.channels) +
                static_cast<std::size_t>(channel);
            value = slope_of == nullptr ? image[at] : times_slope(activation, slope_of[at], image[at]);
        }
        shared[channel * tile.plane + tile_row * tile.pitch + column] = value;
    }
}

}  // namespace finch::backend::cuda
