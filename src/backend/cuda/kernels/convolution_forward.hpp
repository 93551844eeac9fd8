#pragma once

#include "kernels/convolution_tile.hpp"

namespace finch::backend::cuda {

/// The kernel that computes y = f(x ∗ w + b) or, if `is_gradient`, grad_x from grad_y. A thread computes `pixels`
/// neighbouring pixels of a row in `outputs` channels, with all sums in registers. The block's weights are in shared
/// memory. The weights of one tap are contiguous, so that a warp reads them as 128-bit broadcasts. Grid: x = batch ·
/// bands, with tile.rows rows per band.
template <int kernel, int pixels, int outputs>
struct DirectConvolution {
    static constexpr int max_threads = 256;
    static constexpr int taps = kernel * kernel;
    static constexpr int weight_pitch = (outputs + 3) / 4 * 4;        ///< floats per tap and group of channels
    static constexpr int window = (pixels + kernel - 1 + 3) / 4 * 4;  ///< columns of a row that a thread reads

    ConvolutionSizes sizes;
    TileSizes tile;
    int bands;
    int groups;  ///< groups of `outputs` channels
    bool is_gradient;
    Activation activation;
    const float* x;
    const float* slope_of;    ///< gradient: the output of forward; otherwise null
    const float* parameters;  ///< weight (forward's out, forward's in, kernel, kernel), then bias
    float* y;

    /// Returns the size of the shared memory in floats.
    [[nodiscard]] static std::size_t shared_floats(const ConvolutionSizes& sizes, const TileSizes& tile, int groups) {
        return static_cast<std::size_t>(sizes.channels) *
               static_cast<std::size_t>(tile.plane + taps * groups * weight_pitch);
    }
    /// Returns the number of columns of the tile. The tile includes the whole window that the last thread of a row
    /// reads.
    [[nodiscard]] static int columns(int width_out) {
        return (width_out + pixels - 1) / pixels * pixels - pixels + window;
    }

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        auto* planes = thread.template shared<float>();
        float* weights = planes + sizes.channels * tile.plane;
        const int sample = thread.block_x() / bands;
        const int first_row = thread.block_x() % bands * tile.rows;
        const std::size_t image = static_cast<std::size_t>(sample) * static_cast<std::size_t>(sizes.height) *
                                  static_cast<std::size_t>(sizes.width) * static_cast<std::size_t>(sizes.channels);
        load_weights(thread, weights);
        load_tile(thread, sizes, tile, tile.rows + kernel - 1, x + image,
                  slope_of == nullptr ? nullptr : slope_of + image, activation, first_row, planes);
        thread.sync();

        const int segments = (sizes.width_out + pixels - 1) / pixels;
        const int positions = tile.rows * segments;
        for (int item = thread.index(); item < positions * groups; item += thread.count()) {
            const int group = item / positions;
            const int row = item % positions / segments;
            const int column = item % segments * pixels;
            if (first_row + row < sizes.height_out) {
                float sums[outputs][pixels];
                add_up(planes + row * tile.pitch + column, weights + group * weight_pitch, sums);
                store(sample, first_row + row, column, group * outputs, sums);
            }
        }
    }

private:
    /// Loads the weights as (input channel, tap, group, output), with zeros beyond channels_out. To compute the
    /// gradient, the weights of forward are rotated by 180 degrees, and their input and output channels are exchanged.
    template <class Thread>
    FINCH_DEVICE void load_weights(const Thread& thread, float* weights) const {
        const int count = sizes.channels * taps * groups * weight_pitch;
        for (int i = thread.index(); i < count; i += thread.count()) {
            const int within = i % weight_pitch;
            const int output = i / weight_pitch % groups * outputs + within;
            const int tap = i / (weight_pitch * groups) % taps;
            const int channel = i / (weight_pitch * groups * taps);
            const int at = is_gradient ? (channel * sizes.channels_out + output) * taps + taps - 1 - tap
                                       : (output * sizes.channels + channel) * taps + tap;
            weights[i] = within < outputs && output < sizes.channels_out ? parameters[at] : 0.0F;
        }
    }

    FINCH_DEVICE void add_up(const float* corner, const float* weights, float (&sums)[outputs][pixels]) const {
        FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
            FINCH_UNROLL for (int p = 0; p < pixels; ++p) {
                sums[o][p] = 0.0F;
            }
        }
        for (int channel = 0; channel < sizes.channels; ++channel) {
            FINCH_UNROLL for (int row = 0; row < kernel; ++row) {
                alignas(16) float seen[window];
                read_window(corner + channel * tile.plane + row * tile.pitch, seen);
                FINCH_UNROLL for (int column = 0; column < kernel; ++column) {
                    const int tap = row * kernel + column;
                    float factors[weight_pitch];
                    read_weights(weights + (channel * taps + tap) * groups * weight_pitch, factors);
                    FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
                        FINCH_UNROLL for (int p = 0; p < pixels; ++p) {
                            sums[o][p] += factors[o] * seen[p + column];
                        }
                    }
                }
            }
        }
    }

    /// Reads a window. If the first column of each thread is a multiple of 4, reads 128 bits at a time.
    static FINCH_DEVICE void read_window(const float* from, float (&seen)[window]) {
        if constexpr (pixels % 4 == 0) {
            FINCH_UNROLL for (int i = 0; i < window; i += 4) {
                *reinterpret_cast<float4*>(seen + i) = *reinterpret_cast<const float4*>(from + i);
            }
        } else {
            FINCH_UNROLL for (int i = 0; i < pixels + kernel - 1; ++i) {
                seen[i] = from[i];
            }
        }
    }
    static FINCH_DEVICE void read_weights(const float* from, float (&factors)[weight_pitch]) {
        FINCH_UNROLL for (int i = 0; i < weight_pitch; i += 4) {
            const float4 four = *reinterpret_cast<const float4*>(from + i);
            factors[i] = four.x;
            factors[i + 1] = four.y;
            factors[i + 2] = four.z;
            factors[i + 3] = four.w;
        }
    }

    FINCH_DEVICE void store(int sample, int row, int column, int first_output,
                            const float (&sums)[outputs][pixels]) const {
        const float* bias = parameters + sizes.channels * sizes.channels_out * taps;
        FINCH_UNROLL for (int p = 0; p < pixels; ++p) {
            if (column + p < sizes.width_out) {
                const std::size_t pixel =
                    (static_cast<std::size_t>(sample) * static_cast<std::size_t>(sizes.height_out) +
                     static_cast<std::size_t>(row)) *
                        static_cast<std::size_t>(sizes.width_out) +
                    static_cast<std::size_t>(column + p);
                float* to = y + pixel * static_cast<std::size_t>(sizes.channels_out) + first_output;
                FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
                    if (first_output + o < sizes.channels_out) {
                        to[o] = is_gradient ? sums[o][p] : activate(activation, sums[o][p] + bias[first_output + o]);
                    }
                }
            }
        }
    }
};

}  // namespace finch::backend::cuda
