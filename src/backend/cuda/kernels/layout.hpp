#pragma once

#include "finch/backend/operation.hpp"

#include "kernels/elementwise.hpp"

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <kernel_launch.hpp>
#include <type_traits>

namespace finch::backend::cuda {

/// Converts between float and __nv_bfloat16 or __half, rounding to nearest even. Values beyond the range of __half
/// become infinite.
template <class To, class From>
[[nodiscard]] FINCH_DEVICE To convert(From value) {
    if constexpr (std::is_same_v<To, From>) {
        return value;
    } else if constexpr (std::is_same_v<From, __nv_bfloat16>) {
        return __bfloat162float(value);
    } else if constexpr (std::is_same_v<From, __half>) {
        return __half2float(value);
    } else if constexpr (std::is_same_v<To, __nv_bfloat16>) {
        return __float2bfloat16_rn(value);
    } else {
        return __float2half_rn(value);
    }
}

/// Neighbouring numbers that a thread reads or writes at once.
template <class Number, int width>
struct alignas(width * sizeof(Number)) Vector {
    Number numbers[width];
};

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
            const Vector<From, width> read = reinterpret_cast<const Vector<From, width>*>(from)[i];
            Vector<To, width> converted;
            FINCH_UNROLL for (int k = 0; k < width; ++k) {
                converted.numbers[k] = convert<To>(read.numbers[k]);
            }
            reinterpret_cast<Vector<To, width>*>(to)[i] = converted;
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
struct UnpackWeights {
    static constexpr int max_threads = 256;
    const float* packed;
    float* canonical;
    std::int64_t channels_out, channels_in, taps, padded_in;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t count = channels_out * channels_in * taps;
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            const MatrixPlace tap(i, taps);
            const MatrixPlace channel(tap.row, channels_in);
            const std::int64_t at = (channel.row * taps + tap.column) * padded_in + channel.column;
            canonical[i] = packed[at];
        }
    }
};

/// The kernel that computes y = f(from + bias). y has the shape (rows, channels), and `from` has the shape (rows,
/// channels_from) with channels_from ≥ channels. Each thread computes `width` neighbouring channels of a row. `width`
/// is 4 if both numbers of channels are multiples of 4 and both pointers are aligned to 16 bytes, otherwise 1.
template <class From, int width>
struct BiasActivation {
    static constexpr int max_threads = 256;
    Activation activation;
    const From* from;
    const float* bias;  ///< (channels) or null
    float* y;
    std::int64_t rows, channels_from, channels;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        for (std::int64_t i = thread.global_index(); i < rows * channels / width; i += thread.global_count()) {
            const MatrixPlace place(i * width, channels);
            const auto read =
                *reinterpret_cast<const Vector<From, width>*>(from + place.row * channels_from + place.column);
            Vector<float, width> result;
            FINCH_UNROLL for (int k = 0; k < width; ++k) {
                const float shift = bias == nullptr ? 0.0F : bias[place.column + k];
                result.numbers[k] = activate(activation, convert<float>(read.numbers[k]) + shift);
            }
            reinterpret_cast<Vector<float, width>*>(y)[i] = result;
        }
    }
};

/// The kernel that replaces each of the `count` values of `grad` with grad · f′(y).
struct ActivationGradient {
    static constexpr int max_threads = 256;
    Activation activation;
    const float* y;
    float* grad;
    std::int64_t count;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            grad[i] = times_slope(activation, y[i], grad[i]);
        }
    }
};

/// The first of two kernels for the column sums of `from` (rows, channels). The rows form groups of 8. partial[p] holds
/// one value per channel: the sum over the groups p, p + parts, p + 2·parts and so on. Grid: x = parts, y = groups of
/// 32 channels. The 256 threads of a block add 8 rows at a time. Shared memory: one float per thread.
struct ColumnSumsPart {
    static constexpr int max_threads = 256;
    const float* from;
    float* partial;
    std::int64_t rows, channels;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        auto* of_threads = thread.template shared<float>();
        const std::int64_t channel = static_cast<std::int64_t>(thread.block_y()) * 32 + thread.index() % 32;
        constexpr int lines = max_threads / 32;
        float sum = 0.0F;
        if (channel < channels) {
            const std::int64_t step = static_cast<std::int64_t>(thread.blocks_x()) * lines;
            const std::int64_t first = static_cast<std::int64_t>(thread.block_x()) * lines + thread.index() / 32;
            for (std::int64_t row = first; row < rows; row += step) {
                sum += from[row * channels + channel];
            }
        }
        of_threads[thread.index()] = sum;
        thread.sync();
        if (thread.index() < 32 && channel < channels) {
            float total = 0.0F;
            FINCH_UNROLL for (int line = 0; line < lines; ++line) {
                total += of_threads[line * 32 + thread.index()];
            }
            partial[thread.block_x() * channels + channel] = total;
        }
    }
};

/// The second of two kernels for column sums. Writes the sum over all parts of a channel to `sums` (channels).
struct ColumnSumsEnd {
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
