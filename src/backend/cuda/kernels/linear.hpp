#pragma once

#include "finch/backend/operation.hpp"

#include "kernel_launch.hpp"
#include "kernels/elementwise.hpp"

#include <cstdint>

// Kernels for a linear layer with few units. Neighbouring threads compute neighbouring columns in the order of x (HWC),
// so that reads of x are coalesced. The columns of the weights are in CHW order; the kernels read and write the weights
// in place.
namespace finch::backend::cuda {

struct LinearSizes {
    std::int64_t batch;
    int features;  ///< pixels · channels
    int pixels;    ///< H·W
    int channels;
    int units;

    /// Returns the column of the weights that is multiplied with the column `feature` of x.
    [[nodiscard]] FINCH_DEVICE int weight_column(int feature) const {
        return pixels == 1 || channels == 1 ? feature : feature % channels * pixels + feature / channels;
    }
};

/// The first of two kernels of forward. Computes `partial` (parts, batch, units): the part p is x · weightᵀ over the
/// blocks of columns p, p + parts, p + 2·parts and so on. Grid: x = parts, y = tiles of `samples` samples, z = tiles of
/// `tile` units. Shared memory: samples · tile floats per thread.
template <int tile>
struct LinearForwardPart {
    static constexpr int max_threads = 128;
    static constexpr int samples = 8;
    LinearSizes sizes;
    const float* x;       ///< (batch, features)
    const float* weight;  ///< (units, features)
    float* partial;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t first_sample = static_cast<std::int64_t>(thread.block_y()) * samples;
        const int first_unit = thread.block_z() * tile;
        float sums[samples][tile] = {};
        const int step = thread.blocks_x() * thread.count();
        for (int f = thread.block_x() * thread.count() + thread.index(); f < sizes.features; f += step) {
            add_column(f, first_sample, first_unit, sums);
        }
        auto* of_threads = thread.template shared<float>();
        FINCH_UNROLL for (int b = 0; b < samples; ++b) {
            FINCH_UNROLL for (int u = 0; u < tile; ++u) {
                of_threads[(b * tile + u) * thread.count() + thread.index()] = sums[b][u];
            }
        }
        thread.sync();
        store(thread, of_threads, first_sample, first_unit);
    }

private:
    FINCH_DEVICE void add_column(int f, std::int64_t first_sample, int first_unit, float (&sums)[samples][tile]) const {
        const float* column = weight + sizes.weight_column(f);
        float weights[tile];
        FINCH_UNROLL for (int u = 0; u < tile; ++u) {
            weights[u] = first_unit + u < sizes.units
                             ? column[static_cast<std::int64_t>(first_unit + u) * sizes.features]
                             : 0.0F;
        }
        FINCH_UNROLL for (int b = 0; b < samples; ++b) {
            const float value = first_sample + b < sizes.batch ? x[(first_sample + b) * sizes.features + f] : 0.0F;
            FINCH_UNROLL for (int u = 0; u < tile; ++u) {
                sums[b][u] += value * weights[u];
            }
        }
    }

    /// Adds the sums of all threads, always in the same order. One warp adds the sums of one output.
    template <class Thread>
    FINCH_DEVICE void store(Thread& thread, const float* of_threads, std::int64_t first_sample, int first_unit) const {
        const int lane = thread.index() % 32;
        for (int i = thread.index() / 32; i < samples * tile; i += thread.count() / 32) {
            const std::int64_t sample = first_sample + i / tile;
            const int unit = first_unit + i % tile;
            if (sample >= sizes.batch || unit >= sizes.units) {
                continue;  // the whole warp
            }
            float sum = 0.0F;
            for (int other = lane; other < thread.count(); other += 32) {
                sum += of_threads[i * thread.count() + other];
            }
            FINCH_UNROLL for (int mask = 1; mask < 32; mask *= 2) {
                sum += thread.shuffle_xor(sum, mask);
            }
            if (lane == 0) {
                partial[(thread.block_x() * sizes.batch + sample) * sizes.units + unit] = sum;
            }
        }
    }
};

/// The second of two kernels of forward. Computes y (batch, units) as f(bias + sum of the parts).
struct LinearForwardEnd {
    static constexpr int max_threads = 128;
    std::int64_t outputs;  ///< batch · units
    int units;
    int parts;
    const float* partial;  ///< (parts, outputs)
    const float* bias;     ///< (units)
    Activation activation;
    float* y;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t i = thread.global_index();
        if (i >= outputs) {
            return;
        }
        float sum = 0.0F;
        for (int part = 0; part < parts; ++part) {
            sum += partial[part * outputs + i];
        }
        y[i] = activate(activation, sum + bias[i % units]);
    }
};

/// Returns the offset of a column's gradient among the parameters. The parameters are the weights (units, features)
/// with columns in CHW order, followed by the biases. The biases form one more column, whose number is `features`.
[[nodiscard]] FINCH_DEVICE std::int64_t parameter_offset(const LinearSizes& sizes, int unit, int feature) {
    return feature == sizes.features ? static_cast<std::int64_t>(sizes.units) * sizes.features + unit
                                     : static_cast<std::int64_t>(unit) * sizes.features + sizes.weight_column(feature);
}

/// The kernel for the gradients of x, of the weights and of the biases. Grid: x = columns, including a column of ones
/// for the biases; y = parts of the batch with `samples_of_part` samples each. If there is one part, the kernel writes
/// `grad_parameters`. If there are several parts, the kernel writes `partial` (parts, units, features + 1), whose
/// columns are in the order of x. `tile` is a multiple of 4 and at least the number of units. Shared memory: samples ·
/// tile floats.
template <int tile>
struct LinearBackward {
    static constexpr int max_threads = 64;
    static constexpr int samples = 16;  ///< with gradients of y in shared memory at the same time
    LinearSizes sizes;
    Activation activation;
    std::int64_t samples_of_part;
    const float* x;
    const float* y;
    const float* grad_y;  ///< (batch, units); the activation's derivative is applied here
    const float* weight;
    float* grad_x;  ///< null if not needed
    float* grad_parameters;
    float* partial;  ///< null if there is one part

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const int f = thread.block_x() * thread.count() + thread.index();
        auto* staged = thread.template shared<float>();
        float weights[tile];
        float sums[tile] = {};
        FINCH_UNROLL for (int u = 0; u < tile; ++u) {
            const bool wanted = grad_x != nullptr && f < sizes.features && u < sizes.units;
            weights[u] = wanted ? weight[parameter_offset(sizes, u, f)] : 0.0F;
        }
        const std::int64_t begin = thread.block_y() * samples_of_part;
        const std::int64_t end = begin + samples_of_part < sizes.batch ? begin + samples_of_part : sizes.batch;
        for (std::int64_t first = begin; first < end; first += samples) {
            thread.sync();  // the previous samples have been read
            stage(thread, first, end, staged);
            thread.sync();
            FINCH_UNROLL for (int b = 0; b < samples; ++b) {
                if (first + b < end && f <= sizes.features) {
                    one_sample(f, first + b, staged + b * tile, weights, sums);
                }
            }
        }
        if (f <= sizes.features) {
            store(thread.block_y(), f, sums);
        }
    }

private:
    /// Loads the gradients before the activation for the samples from `first` to before `end`. Units beyond the last
    /// unit get zeros.
    template <class Thread>
    FINCH_DEVICE void stage(Thread& thread, std::int64_t first, std::int64_t end, float* staged) const {
        for (int i = thread.index(); i < samples * tile; i += thread.count()) {
            const std::int64_t sample = first + i / tile;
            const int unit = i % tile;
            float value = 0.0F;
            if (sample < end && unit < sizes.units) {
                const std::int64_t at = sample * sizes.units + unit;
                value = times_slope(activation, y[at], grad_y[at]);
            }
            staged[i] = value;
        }
    }

    FINCH_DEVICE void one_sample(int f, std::int64_t sample, const float* staged, const float (&weights)[tile],
                                 float (&sums)[tile]) const {
        const bool is_bias = f == sizes.features;
        const std::int64_t at = sample * sizes.features + f;
        const float value = is_bias ? 1.0F : x[at];
        float sum = 0.0F;
        const auto grads = load<tile>(staged);
        FINCH_UNROLL for (int u = 0; u < tile; ++u) {
            sums[u] += grads.numbers[u] * value;
            sum += grads.numbers[u] * weights[u];
        }
        if (grad_x != nullptr && !is_bias) {
            grad_x[at] = sum;
        }
    }

    FINCH_DEVICE void store(int part, int f, const float (&sums)[tile]) const {
        FINCH_UNROLL for (int u = 0; u < tile; ++u) {
            if (u < sizes.units && partial == nullptr) {
                grad_parameters[parameter_offset(sizes, u, f)] = sums[u];
            } else if (u < sizes.units) {
                partial[(static_cast<std::int64_t>(part) * sizes.units + u) * (sizes.features + 1) + f] = sums[u];
            }
        }
    }
};

/// The second kernel of backward, used only if the batch has several parts. Sums the parts to the gradients of the
/// parameters. Grid: x = columns, y = units.
struct LinearBackwardEnd {
    static constexpr int max_threads = 128;
    LinearSizes sizes;
    int parts;
    const float* partial;  ///< (parts, units, features + 1)
    float* grad_parameters;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const int f = thread.block_x() * thread.count() + thread.index();
        const int unit = thread.block_y();
        if (f > sizes.features) {
            return;
        }
        float sum = 0.0F;
        for (int part = 0; part < parts; ++part) {
            sum += partial[(static_cast<std::int64_t>(part) * sizes.units + unit) * (sizes.features + 1) + f];
        }
        grad_parameters[parameter_offset(sizes, unit, f)] = sum;
    }
};

}  // namespace finch::backend::cuda
