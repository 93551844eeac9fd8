#pragma once

#include "kernels.hpp"
#include "vectors.hpp"

namespace finch::backend::cpu::FINCH_ISA {

/// The gradient of a convolution's weights without a transform, for any kernel size, stride and padding. A vector holds
/// consecutive elements of one row of a window, (kernel column, input). In NHWC these are consecutive in memory, so
/// that few lanes are idle for any number of channels. The rows of x are copied together with their padding.
struct DirectGradient {
    static std::int64_t window_of(const DirectPass& pass) { return pass.kernel * pass.channels; }
    static std::int64_t row_of(const DirectPass& pass) { return vectors_of(window_of(pass)) * lanes; }

    static std::int64_t scratch_floats(const DirectPass& pass) {
        return (pass.width + pass.padding_before + pass.padding_after) * pass.channels + 2 * lanes;
    }
    static std::int64_t sums_floats(const DirectPass& pass) {
        return (pass.kernel * row_of(pass) + 1) * pass.channels_out;
    }

    /// Adds one row of windows: sums[output][element of the window] += Σ over columns of grad_y · x.
    static void add_row(const DirectPass& pass, const float* x, const float* grad_y, float* sums) {
        const std::int64_t row = row_of(pass);
        for (std::int64_t v = 0; v < row; v += 2 * lanes) {
            for_parts(pass.channels_out, most_rows, [&](std::int64_t o, std::int64_t rows) {
                multiply_rows<true>(rows, smaller(2, (row - v) / lanes),
                                    {.a = grad_y + o,
                                     .a_row = 1,
                                     .a_k = pass.channels_out,
                                     .b = x + v,
                                     .b_k = pass.stride * pass.channels,
                                     .to = sums + o * row + v,
                                     .to_row = row,
                                     .count = pass.width_out});
            });
        }
    }

    /// Adds a sample. The sums are (kernel row, output, kernel column, input), then (output) for the bias.
    static void add(const DirectPass& pass, const float* x, const float* grad_y, float* sums, float* scratch) {
        const std::int64_t row = pass.width * pass.channels;
        const std::int64_t grad_row = pass.width_out * pass.channels_out;
        const std::int64_t size = scratch_floats(pass);
        for (std::int64_t k = 0; k < size; ++k) {
            scratch[k] = 0;
        }
        for (std::int64_t i = 0; i < pass.height; ++i) {
            __builtin_memcpy(scratch + pass.padding_before * pass.channels, x + i * row,
                             static_cast<unsigned long>(row) * sizeof(float));
            for (std::int64_t a = 0; a < pass.kernel; ++a) {
                const std::int64_t down = i + pass.padding_before - a;
                if (down >= 0 && down % pass.stride == 0 && down / pass.stride < pass.height_out) {
                    add_row(pass, scratch, grad_y + down / pass.stride * grad_row,
                            sums + a * pass.channels_out * row_of(pass));
                }
            }
        }
        float* const bias_sums = sums + pass.kernel * pass.channels_out * row_of(pass);
        for (std::int64_t pixel = 0; pixel < pass.height_out * pass.width_out; ++pixel, grad_y += pass.channels_out) {
            for (std::int64_t o = 0; o < pass.channels_out; ++o) {
                bias_sums[o] += grad_y[o];
            }
        }
    }

    static void write(const DirectPass& pass, const float* sums, float* grad_weights, float* grad_bias) {
        const std::int64_t row = row_of(pass);
        for (std::int64_t o = 0; o < pass.channels_out; ++o) {
            for (std::int64_t i = 0; i < pass.channels; ++i) {
                for (std::int64_t a = 0; a < pass.kernel; ++a) {
                    for (std::int64_t b = 0; b < pass.kernel; ++b) {
                        *grad_weights++ = sums[(a * pass.channels_out + o) * row + b * pass.channels + i];
                    }
                }
            }
            grad_bias[o] = sums[pass.kernel * pass.channels_out * row + o];
        }
    }

    static constexpr DirectKernels table{
        .scratch_floats = &scratch_floats, .sums_floats = &sums_floats, .add = &add, .write = &write};
};

}  // namespace finch::backend::cpu::FINCH_ISA
