#pragma once

#include "finch/backend/operation.hpp"

#include "kernels/elementwise.hpp"
#include "step_row.hpp"

#include <cmath>
#include <cstdint>
#include <kernel_launch.hpp>

// Batch normalisation over (batch, pixels, channels), as src/backend/cpu/batch_norm.cpp. Sums go over the rows of
// pixels that are no padding: first each block's part of the rows, then the parts in a fixed order.
namespace finch::backend::cuda {

/// What a layer keeps in the device's memory, by channel.
struct BatchNormMemory {
    double* forward_sums;       ///< (2·channels + 1): Σ x, Σ x², and how many values
    double* backward_sums;      ///< (2·channels + 1): Σ grad, Σ grad · normalised x
    double* mean;               ///< (channels), of the batch; or the running one
    double* inverse_deviation;  ///< (channels)
    float* factors;             ///< (4·channels), of the kernel that goes over the batch
};

/// partial (parts, 2·channels): Σ a and Σ a·b of each part of the rows, where `a` is `grad_y` before the activation.
/// Blocks: x over groups of `lanes` channels, y over parts. Shared memory: two doubles a thread.
struct BatchNormPartials {
    static constexpr int max_threads = 256;
    const StepState* state;
    std::int64_t pixels;
    std::int64_t channels;
    int lanes;  ///< neighbouring threads that have a channel each; divides the threads of a block
    int parts;
    Activation activation;  ///< none in forward
    const float* y;
    const float* a;
    const float* b;
    double* partial;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t rows = state->current.samples * pixels;
        const std::int64_t channel = static_cast<std::int64_t>(thread.block_x()) * lanes + thread.index() % lanes;
        const int row_lanes = thread.count() / lanes;
        const std::int64_t end = rows * (thread.block_y() + 1) / parts;
        double sum = 0;
        double product = 0;
        if (channel < channels) {
            std::int64_t row = rows * thread.block_y() / parts + thread.index() / lanes;
            for (; row < end; row += row_lanes) {
                const std::int64_t i = row * channels + channel;
                const double value = activation == Activation::none ? a[i] : times_slope(activation, y[i], a[i]);
                sum += value;
                product += value * static_cast<double>(b[i]);
            }
        }
        auto* sums = thread.template shared<double>();
        double* products = sums + thread.count();
        sums[thread.index()] = sum;
        products[thread.index()] = product;
        thread.sync();
        if (thread.index() < lanes && channel < channels) {
            for (int i = 1; i < row_lanes; ++i) {
                sum += sums[thread.index() + i * lanes];
                product += products[thread.index() + i * lanes];
            }
            double* to = partial + thread.block_y() * 2 * channels + channel;
            to[0] = sum;
            to[channels] = product;
        }
    }
};

/// Adds the parts, a warp for each channel. In backward, where `grad_parameters` is not null, it and the sums take
/// Σ grad · normalised x in the place of Σ grad · x.
struct BatchNormTotals {
    static constexpr int max_threads = 256;
    const StepState* state;
    std::int64_t pixels;
    std::int64_t channels;
    int parts;
    const double* partial;
    BatchNormMemory memory;
    float* grad_parameters;  ///< weight, bias

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t channel = thread.global_index() / 32;
        double sum = 0;
        double product = 0;
        if (channel < channels) {
            for (int part = thread.index() % 32; part < parts; part += 32) {
                sum += partial[part * 2 * channels + channel];
                product += partial[part * 2 * channels + channels + channel];
            }
        }
        FINCH_UNROLL for (int mask = 1; mask < 32; mask *= 2) {
            sum += thread.shuffle_xor(sum, mask);
            product += thread.shuffle_xor(product, mask);
        }
        if (channel >= channels || thread.index() % 32 != 0) {
            return;
        }
        double* totals = memory.forward_sums;
        if (grad_parameters != nullptr) {
            totals = memory.backward_sums;
            product = (product - memory.mean[channel] * sum) * memory.inverse_deviation[channel];
            grad_parameters[channel] = static_cast<float>(product);
            grad_parameters[channels + channel] = static_cast<float>(sum);
        }
        totals[channel] = sum;
        totals[channels + channel] = product;
        if (channel == 0) {
            totals[2 * channels] = static_cast<double>(state->current.samples * pixels);
        }
    }
};

/// Mean, scale and shift of each channel, in training by the sums of the whole batch, which the running statistics
/// follow; in validation by those.
struct BatchNormStatistics {
    static constexpr int max_threads = 256;
    Mode mode;
    std::int64_t channels;
    double momentum;
    double epsilon;
    const float* parameters;  ///< weight, bias
    float* buffers;           ///< running mean, running variance
    BatchNormMemory memory;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t c = thread.global_index();
        if (c >= channels) {
            return;
        }
        double mean = buffers[c];
        double variance = buffers[channels + c];
        if (mode == Mode::training && memory.forward_sums[2 * channels] > 0) {  // a part of a batch may be empty
            const double total = memory.forward_sums[2 * channels];
            mean = memory.forward_sums[c] / total;
            variance = std::fmax(0.0, memory.forward_sums[channels + c] / total - mean * mean);
            follow(buffers[c], mean);
            follow(buffers[channels + c], variance * total / std::fmax(1.0, total - 1));
        }
        const double inverse_deviation = 1.0 / std::sqrt(variance + epsilon);
        memory.mean[c] = mean;
        memory.inverse_deviation[c] = inverse_deviation;
        memory.factors[c] = static_cast<float>(mean);
        memory.factors[channels + c] = static_cast<float>(static_cast<double>(parameters[c]) * inverse_deviation);
        memory.factors[2 * channels + c] = parameters[channels + c];
    }

private:
    FINCH_DEVICE void follow(float& running, double value) const {
        running = static_cast<float>((1 - momentum) * static_cast<double>(running) + momentum * value);
    }
};

/// The mean and the factors of grad_x = of_grad · grad + of_x · (x − mean) + shift, by the sums over the whole batch.
struct BatchNormGradientFactors {
    static constexpr int max_threads = 256;
    std::int64_t channels;
    const float* parameters;
    BatchNormMemory memory;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t c = thread.global_index();
        if (c >= channels) {
            return;
        }
        const double total = std::fmax(1.0, memory.forward_sums[2 * channels]);
        const double factor = static_cast<double>(parameters[c]) * memory.inverse_deviation[c];
        const double slope = -factor * memory.inverse_deviation[c] * memory.backward_sums[channels + c] / total;
        memory.factors[c] = static_cast<float>(memory.mean[c]);
        memory.factors[channels + c] = static_cast<float>(factor);
        memory.factors[2 * channels + c] = static_cast<float>(slope);
        memory.factors[3 * channels + c] = static_cast<float>(-factor * memory.backward_sums[c] / total);
    }
};

/// The last kernel of forward and of backward: each value by its channel's factors; 0 for padding.
struct BatchNormApply {
    static constexpr int max_threads = 256;
    const StepState* state;  ///< null: there is no padding (validation)
    std::int64_t sample;     ///< pixels · channels
    std::int64_t count;      ///< batch · pixels · channels
    std::int64_t channels;
    Activation activation;
    const float* factors;
    const float* x;
    const float* y;       ///< backward
    const float* grad_y;  ///< null: forward
    float* to;            ///< y, or grad_x

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t real = state == nullptr ? count : state->current.samples * sample;
        const std::int64_t stride = thread.global_count() % channels;
        std::int64_t c = thread.global_index() % channels;
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            to[i] = i < real ? value(i, c) : 0.0F;
            c += stride;
            c -= c >= channels ? channels : 0;
        }
    }

private:
    [[nodiscard]] FINCH_DEVICE float value(std::int64_t i, std::int64_t c) const {
        const float centred = x[i] - factors[c];
        if (grad_y == nullptr) {
            return activate(activation, centred * factors[channels + c] + factors[2 * channels + c]);
        }
        const float grad = activation == Activation::none ? grad_y[i] : times_slope(activation, y[i], grad_y[i]);
        return grad * factors[channels + c] + centred * factors[2 * channels + c] + factors[3 * channels + c];
    }
};

}  // namespace finch::backend::cuda
