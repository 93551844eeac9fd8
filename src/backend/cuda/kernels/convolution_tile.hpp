#pragma once

#include "finch/backend/operation.hpp"

#include "kernel_launch.hpp"
#include "kernels/division.hpp"
#include "kernels/elementwise.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>

// The common code of the direct convolution kernels. A block computes a band of rows of one sample. The block's inputs
// are in shared memory as planes (channel, row, column), including padding, so that neighbouring lanes read
// neighbouring words.
namespace finch::backend::cuda {

/// The sizes of a stride-1 convolution that reads (batch, height, width, channels) and writes (batch, height_out,
/// width_out, channels_out), NHWC. A convolution of the same form computes the gradient of the input from the gradient
/// of the output. Offsets within an image are int.
struct ConvolutionSizes {
    int height;
    int width;
    int channels;
    int height_out;
    int width_out;
    int channels_out;
    int padding;  ///< rows above and columns left of the input

    [[nodiscard]] FINCH_DEVICE std::size_t image_floats() const {
        return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
    }
};

/// Lengths in shared memory, in floats, and the division of a tile among the threads that load it.
struct TileSizes {
    int rows;     ///< rows that the block writes; it reads rows + kernel − 1
    int pitch;    ///< from row to row
    int plane;    ///< from channel to channel
    int strip;    ///< rows that a thread loads, one below the other
    int items;    ///< strips · vectors of a row
    bool paired;  ///< a vector is two neighbouring channels, otherwise one
    Divisor vectors_per_row;
    Divisor vectors_per_pixel;
};

inline TileSizes tile_sizes(int rows, int pitch, int plane, int kernel, int channels, int threads) {
    const bool paired = channels % 2 == 0;
    const int vectors = paired ? channels / 2 : channels;
    const int strips = std::max(1, threads / (pitch * vectors));
    const int strip = (rows + kernel - 1 + strips - 1) / strips;
    return {.rows = rows,
            .pitch = pitch,
            .plane = plane,
            .strip = strip,
            .items = (rows + kernel - 1 + strip - 1) / strip * pitch * vectors,
            .paired = paired,
            .vectors_per_row = divisor(pitch * vectors),
            .vectors_per_pixel = divisor(vectors)};
}

/// A tile for threads that read neighbouring columns at once. The pitch is a multiple of 4, and the plane is an odd
/// multiple of 4, so that channels are in different banks.
inline TileSizes tile_of_columns(int rows, int columns, int kernel, int channels, int threads) {
    const int pitch = (columns + 3) / 4 * 4;
    const int plane = (rows + kernel - 1) * pitch;
    return tile_sizes(rows, pitch, plane % 8 == 0 ? plane + 4 : plane, kernel, channels, threads);
}

/// A tile for lanes that read one column of different rows of the kernel: lane `channel · kernel + row` begins in bank
/// `lane · pitch`. These are different banks, because the pitch is odd.
inline TileSizes tile_of_kernel_rows(int rows, int columns, int kernel, int channels, int threads) {
    const int pitch = columns | 1;
    const int plane = (rows + kernel - 1) * pitch + (32 - (rows - 1) * pitch % 32) % 32;
    return tile_sizes(rows, pitch, plane, kernel, channels, threads);
}

/// Copies `width` channels of one column and `rows` rows to the tile, from element `at` of the image.
template <int rows, int width>
FINCH_DEVICE void copy_column(const float* image, const float* slope_of, int at, int image_pitch, Activation activation,
                              const TileSizes& tile, float* to) {
    Vector<float, width> values[rows];
    FINCH_UNROLL for (int r = 0; r < rows; ++r) {
        values[r] = load<width>(image + at + r * image_pitch);
    }
    if (slope_of != nullptr) {
        Vector<float, width> slopes[rows];  // what the slopes are computed from
        FINCH_UNROLL for (int r = 0; r < rows; ++r) {
            slopes[r] = load<width>(slope_of + at + r * image_pitch);
        }
        with_constant(activation, [&](auto constant) {
            FINCH_UNROLL for (int r = 0; r < rows; ++r) {
                FINCH_UNROLL for (int c = 0; c < width; ++c) {
                    float& value = values[r].numbers[c];
                    value = times_slope(constant.value, slopes[r].numbers[c], value);
                }
            }
        });
    }
    FINCH_UNROLL for (int r = 0; r < rows; ++r) {
        FINCH_UNROLL for (int c = 0; c < width; ++c) {
            to[c * tile.plane + r * tile.pitch] = values[r].numbers[c];
        }
    }
}

/// load_tile() with `width` channels per vector.
template <int width, class Thread>
FINCH_DEVICE void load_vectors(const Thread& thread, const ConvolutionSizes& sizes, const TileSizes& tile,
                               int tile_rows, const float* image, const float* slope_of, Activation activation,
                               int first_row, float* shared) {
    const int image_pitch = sizes.width * sizes.channels;
    const int top = first_row - sizes.padding;
    FINCH_NO_UNROLL for (int i = thread.index(); i < tile.items; i += thread.count()) {
        const int strip = i / tile.vectors_per_row;
        const int place = i - strip * tile.vectors_per_row.number;
        const int column = place / tile.vectors_per_pixel;
        const int channel = (place - column * tile.vectors_per_pixel.number) * width;
        const int in_image = place * width - sizes.padding * sizes.channels;
        const bool is_inside = in_image >= 0 && in_image < image_pitch;
        int row = strip * tile.strip;
        const int end = row + tile.strip < tile_rows ? row + tile.strip : tile_rows;
        const int image_end = !is_inside ? 0 : sizes.height - top < end ? sizes.height - top : end;
        float* to = shared + channel * tile.plane + row * tile.pitch + column;
        int at = (top + row) * image_pitch + in_image;
        const auto go_down = [&](int rows) {
            row += rows;
            to += rows * tile.pitch;
            at += rows * image_pitch;
        };
        const auto clear = [&] {
            FINCH_UNROLL for (int c = 0; c < width; ++c) {
                to[c * tile.plane] = 0.0F;
            }
            go_down(1);
        };
        const auto copy = [&](auto rows) {
            copy_column<rows.value, width>(image, slope_of, at, image_pitch, activation, tile, to);
            go_down(rows.value);
        };
        FINCH_NO_UNROLL while (row < end && top + row < 0) {
            clear();
        }
        FINCH_NO_UNROLL while (row + 4 <= image_end) {
            copy(std::integral_constant<int, 4>{});
        }
        if (row + 2 <= image_end) {
            copy(std::integral_constant<int, 2>{});
        }
        if (row < image_end) {
            copy(std::integral_constant<int, 1>{});
        }
        FINCH_NO_UNROLL while (row < end) {
            clear();
        }
    }
}

/// Fills the tile with rows that begin at `first_row` − padding. Positions outside the image become zero. If `slope_of`
/// is not null, the input is a gradient, and each value is multiplied by the activation's derivative at `slope_of`. All
/// threads of the block must call load_tile() and then sync().
template <class Thread>
FINCH_DEVICE void load_tile(const Thread& thread, const ConvolutionSizes& sizes, const TileSizes& tile, int tile_rows,
                            const float* image, const float* slope_of, Activation activation, int first_row,
                            float* shared) {
    if (tile.paired) {
        load_vectors<2>(thread, sizes, tile, tile_rows, image, slope_of, activation, first_row, shared);
    } else {
        load_vectors<1>(thread, sizes, tile, tile_rows, image, slope_of, activation, first_row, shared);
    }
}

}  // namespace finch::backend::cuda
