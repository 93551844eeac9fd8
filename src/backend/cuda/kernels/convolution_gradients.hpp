#pragma once

#include "kernels/convolution_forward.hpp"
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
    Divisor bands;
    int piece;                ///< columns of a piece
    Divisor pieces;           ///< of a row
    Divisor items;            ///< channels · kernel
    Divisor weights;          ///< of one output channel
    Divisor vectors_of_grad;  ///< of one pixel: two channels each if channels_out is even
    int slices;               ///< count() ≥ slices · items
    Activation activation;
    const float* x = nullptr;
    const float* y = nullptr;
    const float* grad_y = nullptr;
    float* partial = nullptr;  ///< (blocks, weights + biases)

    /// Returns the size of the shared memory in floats. The memory first holds the tile and the gradients, and at the
    /// end the sums of all threads.
    [[nodiscard]] static std::size_t shared_floats(const ConvolutionSizes& sizes, const TileSizes& tile, int threads) {
        const auto work =
            static_cast<std::size_t>(planes_floats(sizes, tile) + tile.rows * sizes.width_out * grad_pitch);
        const auto sums = static_cast<std::size_t>(threads) * (kernel * outputs + 1);
        return work > sums ? work : sums;
    }

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        compute(thread, thread.block_x(), thread.blocks_x());
    }

    /// Computes part number `block` of `blocks`.
    template <class Thread>
    FINCH_DEVICE void compute(Thread& thread, int block, int blocks) const {
        auto* planes = thread.template shared<float>();
        float* grads = planes + planes_floats(sizes, tile);
        const int slice = thread.index() / items;
        const int item = thread.index() - slice * items.number;
        float sums[kernel][outputs];
        FINCH_UNROLL for (int k = 0; k < kernel; ++k) {
            FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
                sums[k][o] = 0.0F;
            }
        }
        float bias = 0.0F;
        for (int band = block; band < batch * bands.number; band += blocks) {
            const int sample = band / bands;
            const int first_row = (band - sample * bands.number) * tile.rows;
            const int rows = sizes.height_out - first_row < tile.rows ? sizes.height_out - first_row : tile.rows;
            load_tile(thread, sizes, tile, tile.rows + kernel - 1,
                      x + static_cast<std::size_t>(sample) * sizes.image_floats(), static_cast<const float*>(nullptr),
                      activation, first_row, planes);
            const std::size_t first = (static_cast<std::size_t>(sample) * static_cast<std::size_t>(sizes.height_out) +
                                       static_cast<std::size_t>(first_row)) *
                                      static_cast<std::size_t>(sizes.width_out * sizes.channels_out);
            if (sizes.channels_out % 2 == 0) {
                load_grads<2>(thread, y + first, grad_y + first, rows, grads);
            } else {
                load_grads<1>(thread, y + first, grad_y + first, rows, grads);
            }
            thread.sync();
            if (slice < slices) {
                walk(planes + item / kernel * tile.plane + item % kernel * tile.pitch, grads, rows, slice, sums);
            }
            bias += add_biases(thread, grads, rows);
            thread.sync();
        }
        add_slices(thread, block, slice, item, sums, bias, planes);
    }

private:
    /// Returns a multiple of 4, because the gradients are read as vectors.
    [[nodiscard]] static FINCH_DEVICE int planes_floats(const ConvolutionSizes& sizes, const TileSizes& tile) {
        return (sizes.channels * tile.plane + 3) / 4 * 4;
    }

    /// Loads `rows` rows of gradients as (pixel, grad_pitch). The outputs beyond channels_out have no values, and the
    /// sums with them are not used.
    template <int width, class Thread>
    FINCH_DEVICE void load_grads(const Thread& thread, const float* slope_of, const float* from, int rows,
                                 float* grads) const {
        const int count = rows * sizes.width_out * vectors_of_grad.number;
        FINCH_NO_UNROLL for (int i = thread.index(); i < count; i += thread.count()) {
            const int pixel = i / vectors_of_grad;
            const auto values = load<width>(from + i * width);
            const auto slopes = load<width>(slope_of + i * width);
            float* to = grads + pixel * grad_pitch + (i - pixel * vectors_of_grad.number) * width;
            with_constant(activation, [&](auto constant) {
                FINCH_UNROLL for (int c = 0; c < width; ++c) {
                    to[c] = times_slope(constant.value, slopes.numbers[c], values.numbers[c]);
                }
            });
        }
    }

    /// Adds the products of x and the gradient for this thread's pieces of rows. `plane` points to the first row and
    /// column that the thread's kernel row reads.
    FINCH_DEVICE void walk(const float* plane, const float* grads, int rows, int slice,
                           float (&sums)[kernel][outputs]) const {
        for (int unit = slice; unit < rows * pieces.number; unit += slices) {
            const int row = unit / pieces;
            const int begin = (unit - row * pieces.number) * piece;
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
        const auto factors = load<grad_pitch>(grad);
        FINCH_UNROLL for (int k = 0; k < kernel; ++k) {
            FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
                sums[k][o] += window[k] * factors.numbers[o];
            }
        }
    }

    /// Returns this thread's part of a bias gradient. The channel of a thread is index() mod grad_pitch. The threads of
    /// one channel divide the pixels among themselves.
    template <class Thread>
    FINCH_DEVICE float add_biases(const Thread& thread, const float* grads, int rows) const {
        const int sharers = thread.count() / grad_pitch;
        float sum = 0.0F;
        for (int pixel = thread.index() / grad_pitch;
             pixel < rows * sizes.width_out && thread.index() < sharers * grad_pitch; pixel += sharers) {
            sum += grads[pixel * grad_pitch + thread.index() % grad_pitch];
        }
        return sum;
    }

    /// Adds the sums of all slices of the block. Shared memory holds the sums as (output, slice, item, kernel),
    /// followed by each thread's part of a bias gradient.
    template <class Thread>
    FINCH_DEVICE void add_slices(const Thread& thread, int block, int slice, int item,
                                 const float (&sums)[kernel][outputs], float bias, float* shared) const {
        float* biases = shared + slices * weights.number * outputs;
        if (slice < slices) {
            FINCH_UNROLL for (int k = 0; k < kernel; ++k) {
                FINCH_UNROLL for (int o = 0; o < outputs; ++o) {
                    shared[o * slices * weights.number + slice * weights.number + item * kernel + k] = sums[k][o];
                }
            }
        }
        biases[thread.index()] = bias;
        thread.sync();
        const int count = sizes.channels_out * weights.number;
        float* to = partial + static_cast<std::size_t>(block) * static_cast<std::size_t>(count + sizes.channels_out);
        for (int i = thread.index(); i < count; i += thread.count()) {
            const int output = i / weights;
            const int rest = i - output * weights.number;  // (channel, kernel row, kernel column)
            float sum = 0.0F;
            for (int s = 0; s < slices; ++s) {
                sum += shared[(output * slices + s) * weights.number + rest];
            }
            to[i] = sum;
        }
        for (int output = thread.index(); output < sizes.channels_out; output += thread.count()) {
            float sum = 0.0F;
            for (int sharer = 0; sharer < thread.count() / grad_pitch; ++sharer) {
                sum += biases[sharer * grad_pitch + output];
            }
            to[count + output] = sum;
        }
    }
};

/// The kernel for both gradients of a convolution. With a small batch, each gradient alone would not fill the GPU.
/// Grid: x = the blocks of `weights`, then the blocks of `input`. The number of threads is that of `weights`.
template <int kernel, int weight_outputs, int input_outputs>
struct DirectGradients {
    static constexpr int max_threads = 256;
    static constexpr int least_blocks = 2;  ///< at most 128 registers
    DirectWeightGradient<kernel, weight_outputs> weights;
    DirectConvolution<kernel, 2, input_outputs> input;
    int weight_blocks;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        if (thread.block_x() < weight_blocks) {
            weights.compute(thread, thread.block_x(), weight_blocks);
        } else {
            input.compute(thread, thread.block_x() - weight_blocks);
        }
    }
};

}  // namespace finch::backend::cuda
