#pragma once

#include "finch/backend/operation.hpp"

#include "kernel_launch.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/numbers.hpp"
#include "kernels/rows.hpp"

#include <cstdint>

namespace finch::backend::cuda {

/// The row and column of an element in a matrix with `columns` columns. The division uses 32-bit numbers if possible,
/// because 32-bit division is much faster.
struct MatrixPlace {
    std::int64_t row;
    std::int64_t column;

    FINCH_DEVICE MatrixPlace(std::int64_t element, std::int64_t columns) {
        if (element <= 0xffffffffLL && columns <= 0xffffffffLL) {
            row = static_cast<unsigned>(element) / static_cast<unsigned>(columns);
            column = static_cast<unsigned>(element) % static_cast<unsigned>(columns);
        } else {
            row = element / columns;
            column = element % columns;
        }
    }
};

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
            to[i] = place.column < channels_from ? convert<To>(from[place.row * channels_from + place.column])
                                                 : convert<To>(0.0F);
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
                converted.numbers[k] = convert<To>(read.numbers[k]);
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
                        ? convert<To>(from[((image.row * height + row) * width + column) * channels + pixel.column])
                        : convert<To>(0.0F);
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

/// The kernel that packs canonical weights (channels_out, channels_in, kernel²) as (padded_out, kernel², padded_in).
template <class To>
struct PackWeights {
    static constexpr int max_threads = 256;
    const float* canonical;
    To* packed;
    std::int64_t channels_out, channels_in, taps, padded_out, padded_in;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t count = padded_out * taps * padded_in;
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            const MatrixPlace in(i, padded_in);
            const MatrixPlace out(in.row, taps);
            const bool there = in.column < channels_in && out.row < channels_out;
            const std::int64_t at = (out.row * channels_in + in.column) * taps + out.column;
            packed[i] = convert<To>(there ? canonical[at] : 0.0F);
        }
    }
};

/// The inverse of PackWeights.
template <class From>
struct UnpackWeights {
    static constexpr int max_threads = 256;
    const From* packed;
    float* canonical;
    std::int64_t channels_out, channels_in, taps, padded_in;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t count = channels_out * channels_in * taps;
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            const MatrixPlace tap(i, taps);
            const MatrixPlace channel(tap.row, channels_in);
            const std::int64_t at = (channel.row * taps + tap.column) * padded_in + channel.column;
            canonical[i] = convert<float>(packed[at]);
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

/// The first of two kernels for the gradient of a bias. Replaces `grad` (rows, channels), the gradient after the
/// activation, with grad · f′(y), and computes `partial` (parts, channels), the sums of each part of its rows. Grid and
/// shared memory: see sum_rows().
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
        sum_rows<1, width, float, float>(thread, RowShare(thread, cut, rows, width), cut, partial,
                                         [&](std::int64_t element, float(&sums)[1][width]) {
                                             auto grads = load<width>(grad + element);
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

/// The second of two kernels for the gradient of a bias. Writes the sum over all parts of a channel to `sums`
/// (channels).
struct BiasGradientEnd {
    static constexpr int max_threads = 128;
    const float* partial;
    float* sums;
    std::int64_t channels;
    int parts;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t channel = thread.global_index();
        if (channel >= channels) {
            return;
        }
        float sum = 0.0F;
        for (int part = 0; part < parts; ++part) {
            sum += partial[part * channels + channel];
        }
        sums[channel] = sum;
    }
};

}  // namespace finch::backend::cuda
