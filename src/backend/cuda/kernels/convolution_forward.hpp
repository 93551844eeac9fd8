#pragma once

#include "kernel_launch.hpp"
#include "kernels/convolution_tile.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace finch::backend::cuda {

/// The kernel that computes y = f(x ∗ w + b) or, if `is_gradient`, grad_x from grad_y. A thread computes `pixels`
/// neighbouring pixels of a row in `outputs` channels, with all sums in registers: one item per thread. The block's
/// weights are in shared memory. The weights of one row of the kernel are contiguous, so that a warp reads them as
/// 128-bit broadcasts. Grid: x = batch · bands, with tile.rows rows per band.
template <int kernel, int pixels, int outputs>
struct DirectConvolution {
    static constexpr int max_threads = 256;
    static constexpr int least_blocks = 3;  ///< at most 80 registers
    static constexpr int taps = kernel * kernel;
    static constexpr int row_weights = kernel * outputs;
    static constexpr int weight_pitch = (row_weights + 3) / 4 * 4;  ///< floats of weights from row to row of the kernel
    /// From input channel to input channel: an odd multiple of 4, so that threads that load weights of different
    /// channels use different banks.
    static constexpr int weight_plane =
        (kernel * weight_pitch) % 8 == 0 ? kernel * weight_pitch + 4 : kernel * weight_pitch;
    /// Columns of a row that a thread reads, as vectors of `pixels` columns.
    static constexpr int window = (pixels + kernel - 1 + pixels - 1) / pixels * pixels;

    ConvolutionSizes sizes;
    TileSizes tile;
    Divisor bands;
    Divisor segments;       ///< groups of `pixels` pixels of a row
    Divisor positions;      ///< tile.rows · segments
    Divisor minor;          ///< channels of the weights' second axis
    int groups;             ///< groups of `outputs` channels
    bool has_aligned_rows;  ///< the rows of y begin at multiples of 16 bytes
    bool is_gradient;
    Activation activation;
    const float* x = nullptr;
    const float* slope_of = nullptr;    ///< gradient: the output of forward; otherwise null
    const float* parameters = nullptr;  ///< weight (forward's out, forward's in, kernel, kernel), then bias
    float* y = nullptr;

    /// Returns the size of the shared memory in floats. The memory first holds the tile and the weights, and at the end
    /// the band of y.
    [[nodiscard]] static std::size_t shared_floats(const ConvolutionSizes& sizes, const TileSizes& tile, int groups) {
        return static_cast<std::size_t>(std::max(sizes.channels * (tile.plane + groups * weight_plane),
                                                 tile.rows * sizes.width_out * sizes.channels_out));
    }
    /// Returns the number of columns of the tile. The tile includes the whole window that the last thread of a row
    /// reads.
    [[nodiscard]] static int columns(int width_out) {
        return (width_out + pixels - 1) / pixels * pixels - pixels + window;
    }

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        compute(thread, thread.block_x());
    }

    /// Computes the band number `block`.
    template <class Thread>
    FINCH_DEVICE void compute(Thread& thread, int block) const {
        auto* planes = thread.template shared<float>();
        float* weights = planes + sizes.channels * tile.plane;
        const int sample = block / bands;
        const int first_row = (block - sample * bands.number) * tile.rows;
        const std::size_t image = static_cast<std::size_t>(sample) * sizes.image_floats();
        load_weights(thread, weights);
        load_tile(thread, sizes, tile, tile.rows + kernel - 1, x + image,
                  slope_of == nullptr ? nullptr : slope_of + image, activation, first_row, planes);
        thread.sync();

        const int rows = sizes.height_out - first_row < tile.rows ? sizes.height_out - first_row : tile.rows;
        const int group = thread.index() / positions;
        const int place = thread.index() - group * positions.number;
        const int row = place / segments;
        const int column = (place - row * segments.number) * pixels;
        const bool has_item = group < groups && row < rows;  // a thread without an item only takes part in sync()
        float sums[outputs][pixels];
        add_up(planes + row * tile.pitch + column, weights + group * sizes.channels * weight_plane,
               has_item ? sizes.channels : 0, sums);
        add_bias(group * outputs, sums);
        thread.sync();
        if (has_item) {
            put(planes + (row * sizes.width_out + column) * sizes.channels_out, column, group * outputs, sums);
        }
        thread.sync();
        const std::size_t first_pixel = (static_cast<std::size_t>(sample) * static_cast<std::size_t>(sizes.height_out) +
                                         static_cast<std::size_t>(first_row)) *
                                        static_cast<std::size_t>(sizes.width_out);
        store(thread, planes, rows * sizes.width_out * sizes.channels_out,
              y + first_pixel * static_cast<std::size_t>(sizes.channels_out));
    }

private:
    /// Loads the weights as (group, input channel, row, column, output). The weights beyond channels_out have no
    /// values, and the sums with them are not used. To compute the gradient, the weights of forward are rotated by 180
    /// degrees, and their input and output channels are exchanged.
    template <class Thread>
    FINCH_DEVICE void load_weights(const Thread& thread, float* weights) const {
        FINCH_NO_UNROLL for (int i = thread.index(); i < sizes.channels * sizes.channels_out; i += thread.count()) {
            const int outer = i / minor;
            const int inner = i - outer * minor.number;
            const int output = is_gradient ? inner : outer;
            const int channel = is_gradient ? outer : inner;
            const int group = output / outputs;
            const float* from = parameters + i * taps;
            float* to = weights + (group * sizes.channels + channel) * weight_plane + output - group * outputs;
            int row_step = weight_pitch;
            int column_step = outputs;
            if (is_gradient) {
                to += (kernel - 1) * (row_step + column_step);
                row_step = -row_step;
                column_step = -column_step;
            }
            FINCH_UNROLL for (int tap = 0; tap < taps; ++tap) {
                to[tap / kernel * row_step + tap % kernel * column_step] = from[tap];
            }
        }
    }

    FINCH_DEVICE void add_up(const float* corner, const float* weights, int channels,
                             float (&sums)[outputs][pixels]) const {
        FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
            FINCH_UNROLL for (int p = 0; p < pixels; ++p) {
                sums[o][p] = 0.0F;
            }
        }
        const float* end = weights + channels * weight_plane;
        for (; weights != end; weights += weight_plane, corner += tile.plane) {
            FINCH_UNROLL for (int row = 0; row < kernel; ++row) {
                alignas(16) float seen[window];
                read_window(corner + row * tile.pitch, seen);
                add_row(seen, weights + row * weight_pitch, sums);
            }
        }
    }

    /// Adds the products of a window and a row of the kernel. `weights` is (column, output).
    static FINCH_DEVICE void add_row(const float (&seen)[window], const float* weights,
                                     float (&sums)[outputs][pixels]) {
        FINCH_UNROLL for (int first = 0; first < row_weights; first += 4) {
            const auto factors = load<4>(weights + first);
            FINCH_UNROLL for (int i = 0; i < 4 && first + i < row_weights; ++i) {
                FINCH_UNROLL for (int p = 0; p < pixels; ++p) {
                    sums[(first + i) % outputs][p] += factors.numbers[i] * seen[p + (first + i) / outputs];
                }
            }
        }
    }

    /// Reads a window. The first column is a multiple of `pixels`.
    static FINCH_DEVICE void read_window(const float* from, float (&seen)[window]) {
        using Vector = std::conditional_t<pixels == 4, float4, float2>;
        FINCH_UNROLL for (int i = 0; i < window; i += pixels) {
            *reinterpret_cast<Vector*>(seen + i) = *reinterpret_cast<const Vector*>(from + i);
        }
    }

    FINCH_DEVICE void add_bias(int first_output, float (&sums)[outputs][pixels]) const {
        if (is_gradient) {
            return;
        }
        const float* bias = parameters + sizes.channels * sizes.channels_out * taps + first_output;
        with_constant(activation, [&](auto constant) {
            FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
                const float add = first_output + o < sizes.channels_out ? bias[o] : 0.0F;
                FINCH_UNROLL for (int p = 0; p < pixels; ++p) {
                    sums[o][p] = activate(constant.value, sums[o][p] + add);
                }
            }
        });
    }

    /// Writes the sums to `to`, which is (pixel, channels_out) in shared memory.
    FINCH_DEVICE void put(float* to, int column, int first_output, const float (&sums)[outputs][pixels]) const {
        const bool has_vectors = outputs % 4 == 0 && sizes.channels_out % 4 == 0;
        const auto write = [&](auto is_whole) {
            FINCH_UNROLL for (int p = 0; p < pixels; ++p) {
                FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
                    if (!is_whole.value && (column + p >= sizes.width_out || first_output + o >= sizes.channels_out)) {
                        continue;
                    }
                    float* word = to + p * sizes.channels_out + first_output + o;
                    if (!has_vectors) {
                        *word = sums[o][p];
                    } else if (o % 4 == 0) {
                        *reinterpret_cast<float4*>(word) = {sums[o][p], sums[o + 1][p], sums[o + 2][p], sums[o + 3][p]};
                    }
                }
            }
        };
        // Not with 4 pixels: <3, 4, 10> would spill registers.
        if (pixels == 2 && column + pixels <= sizes.width_out && first_output + outputs <= sizes.channels_out) {
            write(std::true_type{});
        } else {
            write(std::false_type{});
        }
    }

    /// Copies the band from shared memory to y. Neighbouring lanes write neighbouring words.
    template <class Thread>
    FINCH_DEVICE void store(const Thread& thread, const float* from, int count, float* to) const {
        if (has_aligned_rows) {
            FINCH_NO_UNROLL for (int i = thread.index() * 4; i < count; i += thread.count() * 4) {
                *reinterpret_cast<float4*>(to + i) = *reinterpret_cast<const float4*>(from + i);
            }
        } else {
            FINCH_NO_UNROLL for (int i = thread.index(); i < count; i += thread.count()) {
                to[i] = from[i];
            }
        }
    }
};

}  // namespace finch::backend::cuda
