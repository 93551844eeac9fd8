#pragma once

#include "finch/backend/operation.hpp"

#include "kernel_launch.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/numbers.hpp"
#include "kernels/rows.hpp"
#include "step_row.hpp"

#include <cmath>
#include <cstdint>
#include <type_traits>

// Batch normalisation over (batch, pixels, channels), like src/backend/cpu/batch_norm.cpp. The sums run over all rows
// of pixels except padding. Each block sums its part of the rows. Another kernel then adds the sums of the parts in a
// fixed order. `X` is the type of x and its gradient, `Y` that of y and its gradient.
namespace finch::backend::cuda {

/// The numbers that a layer keeps per channel in device memory.
struct BatchNormMemory {
    double* forward_sums;       ///< (2·channels + 1): Σ x, Σ x², and how many values
    double* backward_sums;      ///< (2·channels + 1): Σ grad, Σ grad · normalised x
    double* mean;               ///< (channels), of the batch; or the running mean
    double* inverse_deviation;  ///< (channels)
    float* factors;             ///< (5, channels): mean, scale, shift; for backward also of_x and shift_of_grad
};

/// The factors of `width` neighbouring channels. Forward: y = f(scale · (x − mean) + shift). Backward, with `grad`
/// before the activation: grad_x = scale · grad + of_x · (x − mean) + shift_of_grad.
template <int width>
struct BatchNormFactors {
    Vector<float, width> mean, scale, shift, of_x, shift_of_grad;

    BatchNormFactors() = default;
    FINCH_DEVICE BatchNormFactors(const float* factors, std::int64_t channels, std::int64_t channel)
        : mean(load<width>(factors + channel)),
          scale(load<width>(factors + channels + channel)),
          shift(load<width>(factors + 2 * channels + channel)),
          of_x(load<width>(factors + 3 * channels + channel)),
          shift_of_grad(load<width>(factors + 4 * channels + channel)) {}
    /// Returns the value before the activation. Forward and backward compute the same bits.
    [[nodiscard]] FINCH_DEVICE float normalised(float x, int k) const {
        return std::fma(x - mean.at(k), scale.at(k), shift.at(k));
    }
};

/// Computes the gradient before the activation, grad_y · f′. For relu the slope is computed from x, so y is not read.
template <class X, class Y, int width>
struct BatchNormGradient {
    Activation activation;
    const X* x;
    const Y* y;
    const Y* grad_y;

    /// Reads the gradients of `width` numbers; `xs` are the numbers of x at the same place.
    [[nodiscard]] FINCH_DEVICE Vector<float, width> at(std::int64_t element, const Vector<X, width>& xs,
                                                       const BatchNormFactors<width>& factors) const {
        const auto grads = load<width>(grad_y + element);
        Vector<Y, width> ys;
        if (activation != Activation::none && activation != Activation::relu) {
            ys = load<width>(y + element);
        }
        Vector<float, width> result;
        FINCH_UNROLL for (int k = 0; k < width; ++k) {
            result.numbers[k] = grads.at(k);
            if (activation == Activation::relu) {
                result.numbers[k] = factors.normalised(xs.at(k), k) > 0.0F ? result.numbers[k] : 0.0F;
            } else if (activation != Activation::none) {
                result.numbers[k] = times_slope(activation, ys.at(k), result.numbers[k]);
            }
        }
        return result;
    }
};

/// The kernel that computes `partial` (parts, 2, channels): Σ x and Σ x² of each part of the rows or, in backward
/// (gradient.grad_y is not null), Σ grad and Σ grad · x. Grid and shared memory: see sum_rows().
template <class X, class Y, int width>
struct BatchNormPartials {
    static constexpr int max_threads = RowCut::threads;
    /// For bfloat16 x, 8 rows are added in float, then in double (sum_rows). Products in Σ x² are exact in float.
    using Term = std::conditional_t<std::is_same_v<X, float>, double, float>;
    const StepState* state;
    std::int64_t pixels;
    RowCut cut;
    BatchNormGradient<X, Y, width> gradient;
    const float* factors;
    double* partial;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t rows = state->current.samples * pixels;
        const RowShare share(thread, cut, rows, width);
        BatchNormFactors<width> of{};  // loaded here, because nvcc would load them again for each row
        if (gradient.grad_y != nullptr && share.channel < cut.channels) {
            of = {factors, cut.channels, share.channel};
        }
        sum_rows<2, width, double, Term>(thread, share, cut, partial,
                                         [&](std::int64_t element, Term(&terms)[2][width]) {
                                             const auto xs = load<width>(gradient.x + element);
                                             if (gradient.grad_y == nullptr) {
                                                 add(xs, xs, terms);
                                             } else {
                                                 add(gradient.at(element, xs, of), xs, terms);
                                             }
                                         });
    }

private:
    FINCH_DEVICE static void add(const auto& values, const Vector<X, width>& xs, Term (&terms)[2][width]) {
        FINCH_UNROLL for (int k = 0; k < width; ++k) {
            const auto value = static_cast<Term>(values.at(k));
            terms[0][k] += value;
            terms[1][k] += value * static_cast<Term>(xs.at(k));
        }
    }
};

/// Computes the mean, scale and shift of each channel, and what backward needs.
struct BatchNormStatistics {
    std::int64_t channels;
    double momentum;
    double epsilon;
    const float* parameters;           ///< weight, bias
    float* buffers;                    ///< running mean, running variance
    std::int64_t skipped_bias_offset;  ///< BatchNormShape::skipped_bias_offset
    BatchNormMemory memory;

    /// Computes the factors from the sums over the `total` values of the whole batch, and updates the running
    /// statistics.
    FINCH_DEVICE void train(std::int64_t c, double total) const {
        if (total > 0) {  // a part of a batch may be empty
            const double mean = memory.forward_sums[c] / total;
            const double variance = std::fmax(0.0, memory.forward_sums[channels + c] / total - mean * mean);
            follow(buffers[c], mean + bias_before(c));
            follow(buffers[channels + c], variance * total / std::fmax(1.0, total - 1));
            set(c, mean, variance);
        } else {
            validate(c);
        }
    }
    /// Computes the factors from the running statistics.
    FINCH_DEVICE void validate(std::int64_t c) const {
        set(c, double{buffers[c]} - bias_before(c), double{buffers[channels + c]});
    }
    /// Computes the factors of backward from its sums over the `total` values of the whole batch.
    FINCH_DEVICE void backward(std::int64_t c, double total) const {
        const double factor = static_cast<double>(parameters[c]) * memory.inverse_deviation[c];
        const double n = std::fmax(1.0, total);
        memory.factors[3 * channels + c] =
            static_cast<float>(-factor * memory.inverse_deviation[c] * memory.backward_sums[channels + c] / n);
        memory.factors[4 * channels + c] = static_cast<float>(-factor * memory.backward_sums[c] / n);
    }

private:
    [[nodiscard]] FINCH_DEVICE double bias_before(std::int64_t c) const {
        return skipped_bias_offset == 0 ? 0.0 : static_cast<double>(parameters[skipped_bias_offset + c]);
    }
    FINCH_DEVICE void follow(float& running, double value) const {
        running = static_cast<float>((1 - momentum) * static_cast<double>(running) + momentum * value);
    }
    FINCH_DEVICE void set(std::int64_t c, double mean, double variance) const {
        const double inverse_deviation = 1.0 / std::sqrt(variance + epsilon);
        memory.mean[c] = mean;
        memory.inverse_deviation[c] = inverse_deviation;
        memory.factors[c] = static_cast<float>(mean);
        memory.factors[channels + c] = static_cast<float>(static_cast<double>(parameters[c]) * inverse_deviation);
        memory.factors[2 * channels + c] = parameters[channels + c];
    }
};

/// The kernel that adds the partial sums. One warp adds the sums of one channel. In backward (`grad_parameters` is not
/// null) the kernel computes Σ grad · normalised x from Σ grad · x, and also writes `grad_parameters`. If the rank
/// trains alone, the kernel also computes the factors.
struct BatchNormTotals {
    static constexpr int max_threads = 256;
    const StepState* state;
    std::int64_t pixels;
    int parts;
    bool is_alone;
    const double* partial;
    float* grad_parameters;  ///< weight, bias
    BatchNormStatistics statistics;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t channels = statistics.channels;
        const BatchNormMemory& memory = statistics.memory;
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
        const auto total = static_cast<double>(state->current.samples * pixels);
        double* totals = memory.forward_sums;
        if (grad_parameters != nullptr) {
            totals = memory.backward_sums;
            product = (product - memory.mean[channel] * sum) * memory.inverse_deviation[channel];
            grad_parameters[channel] = static_cast<float>(product);
            grad_parameters[channels + channel] = static_cast<float>(sum);
            if (statistics.skipped_bias_offset != 0) {
                grad_parameters[statistics.skipped_bias_offset + channel] = 0.0F;
            }
        }
        totals[channel] = sum;
        totals[channels + channel] = product;
        if (channel == 0) {
            totals[2 * channels] = total;
        }
        if (is_alone && grad_parameters == nullptr) {
            statistics.train(channel, total);
        } else if (is_alone) {
            statistics.backward(channel, total);
        }
    }
};

/// The kernel for the factors, from the sums over the batch of all ranks or, in validation, from the running
/// statistics.
struct BatchNormFinish {
    static constexpr int max_threads = 256;
    Mode mode;
    bool is_backward;
    BatchNormStatistics statistics;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t channel = thread.global_index();
        if (channel >= statistics.channels) {
            return;
        }
        const double total = statistics.memory.forward_sums[2 * statistics.channels];
        if (is_backward) {
            statistics.backward(channel, total);
        } else if (mode == Mode::training) {
            statistics.train(channel, total);
        } else {
            statistics.validate(channel);
        }
    }
};

/// The last kernel of forward. Padding becomes 0. Grid: see RowCut.
template <class X, class Y, int width>
struct BatchNormApply {
    static constexpr int max_threads = RowCut::threads;
    const StepState* state;  ///< null: there is no padding (validation)
    std::int64_t pixels, rows;
    RowCut cut;
    Activation activation;
    const float* factors;
    const X* x;
    Y* y;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t real = state == nullptr ? rows : state->current.samples * pixels;
        const RowShare share(thread, cut, rows, width);
        if (share.channel >= cut.channels) {
            return;
        }
        const BatchNormFactors<width> of(factors, cut.channels, share.channel);
        for (std::int64_t row = share.first; row < share.end; row += share.step) {
            const std::int64_t element = row * cut.channels + share.channel;
            Vector<Y, width> results{};
            if (row < real) {
                const auto xs = load<width>(x + element);
                FINCH_UNROLL for (int k = 0; k < width; ++k) {
                    results.set(k, activate(activation, of.normalised(xs.at(k), k)));
                }
            }
            store(results, y + element);
        }
    }
};

/// The last kernel of backward. The gradient of padding becomes 0. Grid: see RowCut.
template <class X, class Y, int width>
struct BatchNormApplyGradient {
    static constexpr int max_threads = RowCut::threads;
    static constexpr int least_blocks = 3;  ///< at most 80 registers
    const StepState* state;
    std::int64_t pixels, rows;
    RowCut cut;
    BatchNormGradient<X, Y, width> gradient;
    const float* factors;
    X* grad_x;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t real = state->current.samples * pixels;
        const RowShare share(thread, cut, rows, width);
        if (share.channel >= cut.channels) {
            return;
        }
        const BatchNormFactors<width> of(factors, cut.channels, share.channel);
        for (std::int64_t row = share.first; row < share.end; row += share.step) {
            const std::int64_t element = row * cut.channels + share.channel;
            Vector<X, width> results{};
            if (row < real) {
                const auto xs = load<width>(gradient.x + element);
                const auto grads = gradient.at(element, xs, of);
                FINCH_UNROLL for (int k = 0; k < width; ++k) {
                    const float centred = xs.at(k) - of.mean.at(k);
                    results.set(k, grads.at(k) * of.scale.at(k) + centred * of.of_x.at(k) + of.shift_of_grad.at(k));
                }
            }
            store(results, grad_x + element);
        }
    }
};

}  // namespace finch::backend::cuda
