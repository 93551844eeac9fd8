#pragma once

#include "finch/backend/operation.hpp"

#include "kernel_launch.hpp"
#include "kernels/division.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/numbers.hpp"
#include "kernels/rows.hpp"

#include <cstdint>

namespace finch::backend::cuda {

/// The kernel that copies `from` (rows, channels_from) to `to` (rows, channels_to). If channels_to is larger, the added
/// channels are zero; if it is smaller, the surplus channels are dropped.
template <class From, class To>
struct CopyChannels {
    static constexpr int max_threads = 256;
    const From* from;
    To* to;
    std::int64_t rows, channels_from, channels_to;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        for (std::int64_t i = thread.global_index(); i < rows * channels_to; i += thread.global_count()) {
            const MatrixPlace place(i, channels_to);
            to[i] = place.column < channels_from ? static_cast<To>(from[place.row * channels_from + place.column])
                                                 : static_cast<To>(0.0F);
        }
    }
};

/// The kernel that converts `count` numbers, a multiple of `width`. Each thread reads and writes `width` numbers at a
/// time, as vectors: neighbouring threads then access neighbouring bytes. `from` and `to` must be aligned to 16 bytes.
template <class From, class To>
struct ConvertNumbers {
    static constexpr int max_threads = 256;
    static constexpr int width = 4;
    const From* from;
    To* to;
    std::int64_t count;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        for (std::int64_t i = thread.global_index(); i < count / width; i += thread.global_count()) {
            const auto read = load<width>(from + i * width);
            Vector<To, width> converted;
            FINCH_UNROLL for (int k = 0; k < width; ++k) {
                converted.numbers[k] = static_cast<To>(read.numbers[k]);
            }
            store(converted, to + i * width);
        }
    }
};

/// The kernel that copies `from` (batch, height, width, channels) to `to` (batch, height_to, width_to, channels_to),
/// moved by `down` rows and columns. Positions outside `from` become zero; pixels that would be outside `to` are
/// dropped. The kernel is used to pad images and to remove the padding.
template <class From, class To>
struct MoveImages {
    static constexpr int max_threads = 256;
    const From* from;
    To* to;
    std::int64_t batch, height, width, channels;
    std::int64_t height_to, width_to, channels_to;
    std::int64_t down;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t count = batch * height_to * width_to * channels_to;
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            const MatrixPlace pixel(i, channels_to);
            const MatrixPlace line(pixel.row, width_to);
            const MatrixPlace image(line.row, height_to);
            const std::int64_t row = image.column - down;
            const std::int64_t column = line.column - down;
            const bool is_there = row >= 0 && row < height && column >= 0 && column < width && pixel.column < channels;
            to[i] = is_there
                        ? static_cast<To>(from[((image.row * height + row) * width + column) * channels + pixel.column])
                        : static_cast<To>(0.0F);
        }
    }
};

/// The kernel that transposes `from` (batch, rows, columns) to `to` (batch, columns, rows). The kernel uses tiles in
/// shared memory, so that reads and writes are coalesced. One block of 256 threads computes one tile. A matrix is
/// divided into `tiles` tiles, with `tiles_across` tiles side by side. Shared memory: tile · (tile + 1) floats.
struct Transpose {
    static constexpr int max_threads = 256;
    static constexpr int tile = 32;
    const float* from;
    float* to;
    std::int64_t rows, columns;
    int tiles, tiles_across;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t base = thread.block_x() / tiles * rows * columns;
        const int place = thread.block_x() % tiles;
        const std::int64_t first_row = static_cast<std::int64_t>(place / tiles_across) * tile;
        const std::int64_t first_column = static_cast<std::int64_t>(place % tiles_across) * tile;
        auto* tiled = thread.template shared<float>();
        const int lane = thread.index() % tile;
        for (int line = thread.index() / tile; line < tile; line += max_threads / tile) {
            if (first_row + line < rows && first_column + lane < columns) {
                tiled[line * (tile + 1) + lane] = from[base + (first_row + line) * columns + first_column + lane];
            }
        }
        thread.sync();
        for (int line = thread.index() / tile; line < tile; line += max_threads / tile) {
            if (first_column + line < columns && first_row + lane < rows) {
                to[base + (first_column + line) * rows + first_row + lane] = tiled[lane * (tile + 1) + line];
            }
        }
    }
};

/// The kernel that computes y = f(from + bias). y has the shape (rows, channels), and `from` has the shape (rows,
/// channels_from) with channels_from ≥ channels. Each thread computes `width` neighbouring channels of a row. `width`
/// must divide both numbers of channels, and both pointers must be aligned to 16 bytes if it is not 1.
template <class From, class To, int width>
struct BiasActivation {
    static constexpr int max_threads = 256;
    Activation activation;
    const From* from;
    const float* bias;  ///< (channels) or null
    To* y;
    std::int64_t rows, channels_from, channels;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        for (std::int64_t i = thread.global_index(); i < rows * channels / width; i += thread.global_count()) {
            const MatrixPlace place(i * width, channels);
            const auto read = load<width>(from + place.row * channels_from + place.column);
            Vector<To, width> result;
            FINCH_UNROLL for (int k = 0; k < width; ++k) {
                const float shift = bias == nullptr ? 0.0F : bias[place.column + k];
                result.set(k, activate(activation, read.at(k) + shift));
            }
            store(result, y + i * width);
        }
    }
};

/// The kernel for the gradient of a bias. AddPartials adds the partial sums. Replaces `grad` (rows, channels), the
/// gradient after the activation, with grad · f′(y), and computes `partial` (parts, channels), the sums of each part of
/// its rows. Grid and shared memory: see sum_rows().
template <class Number, int width>
struct BiasGradientPart {
    static constexpr int max_threads = RowCut::threads;
    Activation activation;
    const Number* y;
    Number* grad;
    RowCut cut;
    std::int64_t rows;
    float* partial;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        sum_rows<1, width, 1, float, float>(
            thread, RowShare(thread, cut, rows, width), cut, partial,
            [&](std::int64_t element) { return load<width>(grad + element); },
            [&](std::int64_t element, auto& grads, float(&sums)[1][width]) {
                if (activation != Activation::none) {
                    const auto ys = load<width>(y + element);
                    FINCH_UNROLL for (int k = 0; k < width; ++k) {
                        grads.set(k, times_slope(activation, ys.at(k), grads.at(k)));
                    }
                    store(grads, grad + element);
                }
                FINCH_UNROLL for (int k = 0; k < width; ++k) {
                    sums[0][k] += grads.at(k);
                }
            });
    }
};

}  // namespace finch::backend::cuda
