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

    /// Floats of a row of the copy of x.
    static std::int64_t padded_row(const DirectPass& pass) {
        return (pass.width + pass.padding_before + pass.padding_after) * pass.channels;
    }
    static std::int64_t scratch_floats(const DirectPass& pass) { return pass.height * padded_row(pass) + 2 * lanes; }
    static std::int64_t sums_floats(const DirectPass& pass) {
        return (pass.kernel * row_of(pass) + 1) * pass.channels_out;
    }

    /// Copies x, with zeros at both sides of each row.
    static void copy(const DirectPass& pass, const float* x, float* to) {
        const std::int64_t row = pass.width * pass.channels;
        const std::int64_t size = scratch_floats(pass);
        for (std::int64_t k = 0; k < size; ++k) {
            to[k] = 0;
        }
        to += pass.padding_before * pass.channels;
        for (std::int64_t i = 0; i < pass.height; ++i, x += row, to += padded_row(pass)) {
            __builtin_memcpy(to, x, static_cast<unsigned long>(row) * sizeof(float));
        }
    }

    /// Adds a sample. The sums are (kernel row, output, kernel column, input), then (output) for the bias.
    static void add(const DirectPass& pass, const float* x, const float* grad_y, float* sums, float* scratch) {
        const std::int64_t row = row_of(pass);
        const std::int64_t grad_row = pass.width_out * pass.channels_out;
        copy(pass, x, scratch);
        for (std::int64_t a = 0; a < pass.kernel; ++a) {
            // The rows of y for which row `a` of the kernel is inside the image.
            const std::int64_t above = pass.padding_before - a;
            const std::int64_t first = above > 0 ? (above + pass.stride - 1) / pass.stride : 0;
            const std::int64_t behind = smaller(pass.height_out, (pass.height - 1 + above + pass.stride) / pass.stride);
            for (std::int64_t v = 0; v < row; v += 2 * lanes) {
                for_parts(pass.channels_out, most_rows, [&](std::int64_t o, std::int64_t rows) {
                    multiply_rows<true>(rows, smaller(2, (row - v) / lanes),
                                        {.a = grad_y + first * grad_row + o,
                                         .a_row = 1,
                                         .a_k = pass.channels_out,
                                         .b = scratch + (first * pass.stride - above) * padded_row(pass) + v,
                                         .b_k = pass.stride * pass.channels,
                                         .to = sums + (a * pass.channels_out + o) * row + v,
                                         .to_row = row,
                                         .count = pass.width_out,
                                         .repeats = behind - first,
                                         .a_repeat = grad_row,
                                         .b_repeat = pass.stride * padded_row(pass)});
                });
            }
        }
        add_pixels(pass, grad_y, sums + pass.kernel * pass.channels_out * row);
    }

    /// Adds the gradients of all pixels to the sums of the bias. A vector may reach into the next pixel: its lanes
    /// beyond the outputs are ignored. The last pixels are added one by one.
    static void add_pixels(const DirectPass& pass, const float* grad_y, float* sums) {
        const std::int64_t outputs = pass.channels_out;
        const std::int64_t size = pass.height_out * pass.width_out * outputs;
        for (std::int64_t o = 0; o < outputs; o += lanes) {
            Vector chains[4] = {};  // an addition need not wait for the previous one, and rounding errors are smaller
            std::int64_t at = o;
            for (; at + 3 * outputs + lanes <= size; at += 4 * outputs) {
                FINCH_UNROLL for (int k = 0; k < 4; ++k) {
                    chains[k] += load(grad_y + at + k * outputs);
                }
            }
            alignas(64) float all_lanes[lanes];
            store(all_lanes, (chains[0] + chains[1]) + (chains[2] + chains[3]));
            const std::int64_t count = smaller(lanes, outputs - o);
            for (; at < size; at += outputs) {
                for (std::int64_t lane = 0; lane < count; ++lane) {
                    all_lanes[lane] += grad_y[at + lane];
                }
            }
            for (std::int64_t lane = 0; lane < count; ++lane) {
                sums[o + lane] += all_lanes[lane];
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
