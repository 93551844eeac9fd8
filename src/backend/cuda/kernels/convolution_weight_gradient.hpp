#pragma once

#include "kernels/convolution_tile.hpp"

namespace finch::backend::cuda {

/// The first of two kernels for the gradients of a convolution's weights and biases. Each block computes its part of
/// the gradients for up to `outputs` output channels: first of the weights (out, in, kernel, kernel), then of the
/// biases (out). A block processes bands. A band is a few rows of one sample. A thread computes the gradients for one
/// input channel and one row of the kernel, with kernel · outputs sums in registers. Each thread processes pieces of
/// rows. The threads of a block form slices, which divide the pieces among themselves. At the end the sums of the
/// slices are added in the order of the slices.
template <int kernel, int outputs>
struct DirectWeightGradient {
    static constexpr int max_threads = 256;
    static constexpr int grad_pitch = (outputs + 3) / 4 * 4;  ///< floats per pixel

    ConvolutionSizes sizes;
    TileSizes tile;
    int batch;
    int bands;
    int piece;   ///< columns of a piece
    int slices;  ///< count() ≥ slices · channels · kernel
    Activation activation;
    const float* x;
    const float* y;
    const float* grad_y;
    float* partial;  ///< (blocks, weights + biases)

    /// Returns the size of the shared memory in floats. The memory first holds the tile and the gradients, and at the
    /// end the sums of all threads.
    [[nodiscard]] static std::size_t shared_floats(const ConvolutionSizes& sizes, const TileSizes& tile, int threads) {
        const auto work =
            static_cast<std::size_t>(sizes.channels * tile.plane + tile.rows * sizes.width_out * grad_pitch);
        const auto sums = static_cast<std::size_t>(threads) * (kernel * outputs + 1);
        return work > sums ? work : sums;
    }

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        auto* planes = thread.template shared<float>();
        float* grads = planes + sizes.channels * tile.plane;
        const int items = sizes.channels * kernel;
        const int slice = thread.index() / items;
        const int item = thread.index() % items;
        float sums[kernel][outputs];
        FINCH_UNROLL for (int k = 0; k < kernel; ++k) {
            FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
                sums[k][o] = 0.0F;
            }
        }
        float bias = 0.0F;
        for (int band = thread.block_x(); band < batch * bands; band += thread.blocks_x()) {
            load(thread, band, planes, grads);
            thread.sync();
            if (slice < slices) {
                walk(planes + item / kernel * tile.plane + item % kernel * tile.pitch, grads, slice, sums);
            }
            bias += add_biases(thread, grads);
            thread.sync();
        }
        add_slices(thread, slice, item, sums, bias, planes);
    }

private:
    template <class Thread>
    FINCH_DEVICE void load(const Thread& thread, int band, float* planes, float* grads) const {
        const int sample = band / bands;
        const int first_row = band % bands * tile.rows;
        const std::size_t image = static_cast<std::size_t>(sample) * static_cast<std::size_t>(sizes.height) *
                                  static_cast<std::size_t>(sizes.width) * static_cast<std::size_t>(sizes.channels);
        load_tile(thread, sizes, tile, tile.rows + kernel - 1, x + image, static_cast<const float*>(nullptr),
                  activation, first_row, planes);
        const std::size_t row_floats =
            static_cast<std::size_t>(sizes.width_out) * static_cast<std::size_t>(sizes.channels_out);
        const std::size_t first = (static_cast<std::size_t>(sample) * static_cast<std::size_t>(sizes.height_out) +
                                   static_cast<std::size_t>(first_row)) *
                                  row_floats;
        const int rows = sizes.height_out - first_row < tile.rows ? sizes.height_out - first_row : tile.rows;
        for (int i = thread.index(); i < tile.rows * sizes.width_out * grad_pitch; i += thread.count()) {
            const int pixel = i / grad_pitch;
            const int output = i % grad_pitch;
            const bool real = output < sizes.channels_out && pixel < rows * sizes.width_out;
            const std::size_t at = first +
                                   static_cast<std::size_t>(pixel) * static_cast<std::size_t>(sizes.channels_out) +
                                   static_cast<std::size_t>(output);
            grads[i] = real ? times_slope(activation, y[at], grad_y[at]) : 0.0F;
        }
    }

    /// Adds the products of x and the gradient for this thread's pieces of rows. `plane` points to the first row and
    /// column that the thread's kernel row reads.
    FINCH_DEVICE void walk(const float* plane, const float* grads, int slice, float (&sums)[kernel][outputs]) const {
        const int pieces = (sizes.width_out + piece - 1) / piece;
        for (int unit = slice; unit < tile.rows * pieces; unit += slices) {
            const int row = unit / pieces;
            const int begin = unit % pieces * piece;
            const int end = begin + piece < sizes.width_out ? begin + piece : sizes.width_out;
            const float* seen = plane + row * tile.pitch;
            float window[kernel];
            FINCH_UNROLL for (int k = 0; k < kernel - 1; ++k) {
                window[k + 1] = seen[begin + k];
            }
            for (int column = begin; column < end; ++column) {
                FINCH_UNROLL for (int k = 0; k < kernel - 1; ++k) {
                    window[k] = window[k + 1];
                }
                window[kernel - 1] = seen[column + kernel - 1];
                add_pixel(grads + (row * sizes.width_out + column) * grad_pitch, window, sums);
            }
        }
    }

    static FINCH_DEVICE void add_pixel(const float* grad, const float (&window)[kernel],
                                       float (&sums)[kernel][outputs]) {
        float factors[grad_pitch];
        FINCH_UNROLL for (int i = 0; i < grad_pitch; i += 4) {
            const float4 four = *reinterpret_cast<const float4*>(grad + i);
            factors[i] = four.x;
            factors[i + 1] = four.y;
            factors[i + 2] = four.z;
            factors[i + 3] = four.w;
        }
        FINCH_UNROLL for (int k = 0; k < kernel; ++k) {
            FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
                sums[k][o] += window[k] * factors[o];
            }
        }
    }

    /// Returns this thread's part of a bias gradient. The channel of a thread is index() mod grad_pitch. The threads of
    /// one channel divide the pixels among themselves.
    template <class Thread>
    FINCH_DEVICE float add_biases(const Thread& thread, const float* grads) const {
        const int sharers = thread.count() / grad_pitch;
        float sum = 0.0F;
        for (int pixel = thread.index() / grad_pitch;
             pixel < tile.rows * sizes.width_out && thread.index() < sharers * grad_pitch; pixel += sharers) {
            sum += grads[pixel * grad_pitch + thread.index() % grad_pitch];
        }
        return sum;
    }

    /// Adds the sums of all slices of the block. Shared memory holds the sums as (slice, item, kernel, output),
    /// followed by each thread's part of a bias gradient.
    template <class Thread>
    FINCH_DEVICE void add_slices(const Thread& thread, int slice, int item, const float (&sums)[kernel][outputs],
                                 float bias, float* shared) const {
        const int items = sizes.channels * kernel;
        float* biases = shared + slices * items * kernel * outputs;
        if (slice < slices) {
            FINCH_UNROLL for (int k = 0; k < kernel; ++k) {
                FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
                    shared[((slice * items + item) * kernel + k) * outputs + o] = sums[k][o];
                }
            }
        }
        biases[thread.index()] = bias;
        thread.sync();
        const int weights = sizes.channels_out * items * kernel;
        float* to = partial +
                    static_cast<std::size_t>(thread.block_x()) * static_cast<std::size_t>(weights + sizes.channels_out);
        for (int i = thread.index(); i < weights; i += thread.count()) {
            const int output = i / (items * kernel);
            const int rest = i % (items * kernel);  // (channel, kernel row, kernel column)
            float sum = 0.0F;
            for (int s = 0; s < slices; ++s) {
                sum += shared[(s * items * kernel + rest) * outputs + output];
            }
            to[i] = sum;
        }
        for (int output = thread.index(); output < sizes.channels_out; output += thread.count()) {
            float sum = 0.0F;
            for (int sharer = 0; sharer < thread.count() / grad_pitch; ++sharer) {
                sum += biases[sharer * grad_pitch + output];
            }
            to[weights + output] = sum;
        }
    }
};

/// The second kernel for the gradients of weights and biases. Adds the rows of `partial` (rows, count), always in the
/// same order. Grid: x = groups of 32 sums.
struct AddPartials {
    static constexpr int max_threads = 256;
    static constexpr int sharers = max_threads / 32;
    const float* partial;
    int rows;
    int count;
    float* sums;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        auto* shared = thread.template shared<float>();  // (sharers, 32)
        const int i = thread.block_x() * 32 + thread.index() % 32;
        const int sharer = thread.index() / 32;
        float sum = 0.0F;
        if (i < count) {
            for (int row = sharer; row < rows; row += sharers) {
                sum += partial[static_cast<std::size_t>(row) * static_cast<std::size_t>(count) +
                               static_cast<std::size_t>(i)];
            }
        }
        shared[thread.index()] = sum;
        thread.sync();
        if (sharer == 0 && i < count) {
            float total = 0.0F;
            for (int s = 0; s < sharers; ++s) {
                total += shared[s * 32 + thread.index()];
            }
            sums[i] = total;
        }
    }
};

}  // namespace finch::backend::cuda
