#pragma once

#include "finch/backend/operation.hpp"

#include <cmath>
#include <cstdint>
#include <kernel_launch.hpp>

namespace finch::backend::cuda {

/// A PoolingShape in numbers of 32 bits, whose divisions are cheap.
struct PoolingSizes {
    int height, width, channels;
    int height_out, width_out;
    int kernel, stride, padding;
};

/// Where a thread works: `parts` blocks share a row of pixels, in which it takes one channel of one pixel.
struct PoolingPlace {
    int sample, row, column, channel;
    bool there;

    template <class Thread>
    FINCH_DEVICE PoolingPlace(const Thread& thread, int parts, int height, int width, int channels) {
        const int line = thread.block_x() / parts;
        const int element = thread.block_x() % parts * thread.count() + thread.index();
        sample = line / height;
        row = line % height;
        column = element / channels;
        channel = element % channels;
        there = column < width;
    }
};

/// Offset of an element of an NHWC tensor.
[[nodiscard]] FINCH_DEVICE std::int64_t nhwc_offset(int sample, int row, int column, int channel, int height, int width,
                                                    int channels) {
    return ((static_cast<std::int64_t>(sample) * height + row) * width + column) * channels + channel;
}

/// y (N, HO, WO, C) = the largest entry of each window, the first of several; one that is not a number wins. `winners`,
/// of y's shape: where in the image it is, row · width + column.
struct MaxPoolingForward {
    static constexpr int max_threads = 256;
    PoolingSizes sizes;
    int parts;
    const float* x;
    float* y;
    std::int32_t* winners;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const PoolingSizes& s = sizes;
        const PoolingPlace place(thread, parts, s.height_out, s.width_out, s.channels);
        if (!place.there) {
            return;
        }
        const int top = place.row * s.stride - s.padding;
        const int left = place.column * s.stride - s.padding;
        float best = -INFINITY;
        std::int32_t winner = -1;
        for (int row = top < 0 ? 0 : top; row < top + s.kernel && row < s.height; ++row) {
            for (int column = left < 0 ? 0 : left; column < left + s.kernel && column < s.width; ++column) {
                const float value =
                    x[nhwc_offset(place.sample, row, column, place.channel, s.height, s.width, s.channels)];
                if (winner < 0 || value > best || value != value) {
                    best = value;
                    winner = row * s.width + column;
                }
            }
        }
        const std::int64_t to =
            nhwc_offset(place.sample, place.row, place.column, place.channel, s.height_out, s.width_out, s.channels);
        y[to] = best;
        winners[to] = winner;
    }
};

/// y = the mean over each window, padding being zeros.
struct AveragePoolingForward {
    static constexpr int max_threads = 256;
    PoolingSizes sizes;
    int parts;
    const float* x;
    float* y;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const PoolingSizes& s = sizes;
        const PoolingPlace place(thread, parts, s.height_out, s.width_out, s.channels);
        if (!place.there) {
            return;
        }
        const int top = place.row * s.stride - s.padding;
        const int left = place.column * s.stride - s.padding;
        float sum = 0.0F;
        for (int row = top < 0 ? 0 : top; row < top + s.kernel && row < s.height; ++row) {
            for (int column = left < 0 ? 0 : left; column < left + s.kernel && column < s.width; ++column) {
                sum += x[nhwc_offset(place.sample, row, column, place.channel, s.height, s.width, s.channels)];
            }
        }
        y[nhwc_offset(place.sample, place.row, place.column, place.channel, s.height_out, s.width_out, s.channels)] =
            sum / static_cast<float>(s.kernel * s.kernel);
    }
};

/// grad_x (N, H, W, C): each entry looks at the windows that contain it and takes what is its own: of a maximum all
/// where it is the winner, of an average (`winners` null) an equal share.
struct PoolingBackward {
    static constexpr int max_threads = 256;
    PoolingSizes sizes;
    int parts;
    const float* grad_y;
    const std::int32_t* winners;
    float* grad_x;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const PoolingSizes& s = sizes;
        const PoolingPlace place(thread, parts, s.height, s.width, s.channels);
        if (!place.there) {
            return;
        }
        const std::int32_t self = place.row * s.width + place.column;
        float sum = 0.0F;
        for (int i = first_window(place.row); i <= last_window(place.row, s.height_out); ++i) {
            for (int j = first_window(place.column); j <= last_window(place.column, s.width_out); ++j) {
                const std::int64_t from =
                    nhwc_offset(place.sample, i, j, place.channel, s.height_out, s.width_out, s.channels);
                sum += winners == nullptr || winners[from] == self ? grad_y[from] : 0.0F;
            }
        }
        grad_x[nhwc_offset(place.sample, place.row, place.column, place.channel, s.height, s.width, s.channels)] =
            winners == nullptr ? sum / static_cast<float>(s.kernel * s.kernel) : sum;
    }

private:
    /// The windows along one axis that contain `position`.
    [[nodiscard]] FINCH_DEVICE int first_window(int position) const {
        const int beyond = position + sizes.padding - sizes.kernel;  // where a window ends that just misses it
        return beyond < 0 ? 0 : beyond / sizes.stride + 1;
    }
    [[nodiscard]] FINCH_DEVICE int last_window(int position, int windows) const {
        const int last = (position + sizes.padding) / sizes.stride;
        return last < windows ? last : windows - 1;
    }
};

}  // namespace finch::backend::cuda
