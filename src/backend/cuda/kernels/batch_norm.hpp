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
// of pixels except padding. Each block sums its part of the rows. Then each block adds the sums of all parts in a fixed
// order, and computes its results. Between the two is a grid barrier, a new kernel, or the sum over all ranks. `X` is
// the type of x and its gradient, `Y` that of y and its gradient.
namespace finch::backend::cuda {

/// The numbers that a layer keeps per channel in device memory.
struct BatchNormMemory {
    double* forward_sums;       ///< (2·channels + 1), of BatchNormTotals: Σ x, Σ x², and how many values
    double* backward_sums;      ///< (2·channels + 1), of BatchNormTotals: Σ grad, Σ grad · x, and an unused number
    double* mean;               ///< (channels), of the batch; without values the running mean
    double* inverse_deviation;  ///< (channels)
    float* factors;             ///< (3, channels): mean, scale, shift
};

/// The factors of `width` neighbouring channels. Forward: y = f(scale · (x − mean) + shift). Backward, with `grad`
/// before the activation: grad_x = scale · grad + of_x · (x − mean) + shift_of_grad.
template <int width>
struct BatchNormFactors {
    Vector<float, width> mean{}, scale{}, shift{}, of_x{}, shift_of_grad{};

    BatchNormFactors() = default;
    /// Reads the factors from (3, channels), or from (5, channels) if `has_gradient`.
    FINCH_DEVICE BatchNormFactors(const float* factors, std::int64_t channels, std::int64_t channel, bool has_gradient)
        : mean(load<width>(factors + channel)),
          scale(load<width>(factors + channels + channel)),
          shift(load<width>(factors + 2 * channels + channel)) {
        if (has_gradient) {
            of_x = load<width>(factors + 3 * channels + channel);
            shift_of_grad = load<width>(factors + 4 * channels + channel);
        }
    }
    /// Returns the value before the activation. Forward and backward compute the same bits.
    [[nodiscard]] FINCH_DEVICE float normalised(float x, int k) const {
        return std::fma(x - mean.at(k), scale.at(k), shift.at(k));
    }
    template <class Y, class X>
    [[nodiscard]] FINCH_DEVICE Vector<Y, width> normalise(Activation activation, const Vector<X, width>& xs) const {
        Vector<Y, width> ys{};
        with_constant(activation, [&](auto constant) {
            FINCH_UNROLL for (int k = 0; k < width; ++k) {
                ys.set(k, activate(decltype(constant)::value, normalised(xs.at(k), k)));
            }
        });
        return ys;
    }
};

/// Numbers of x and grad_y at the same place.
template <class X, class Y, int width>
struct BatchNormRow {
    Vector<X, width> x;
    Vector<Y, width> grad;
};

/// Computes the gradient before the activation, grad_y · f′. For relu the slope is computed from x, so y is not read.
template <class X, class Y, int width>
struct BatchNormGradient {
    using Row = BatchNormRow<X, Y, width>;
    Activation activation;
    const X* x;
    const Y* y;
    const Y* grad_y;  ///< null in forward

    [[nodiscard]] FINCH_DEVICE Row read(std::int64_t element) const {
        return {load<width>(x + element), grad_y == nullptr ? Vector<Y, width>{} : load<width>(grad_y + element)};
    }
    /// Returns the gradients of the numbers `row` at `element`.
    [[nodiscard]] FINCH_DEVICE Vector<float, width> at(std::int64_t element, const Row& row,
                                                       const BatchNormFactors<width>& factors) const {
        Vector<Y, width> ys{};
        if (activation != Activation::none && activation != Activation::relu) {
            ys = load<width>(y + element);
        }
        Vector<float, width> result{};
        with_constant(activation, [&](auto constant) {
            constexpr Activation known = decltype(constant)::value;
            FINCH_UNROLL for (int k = 0; k < width; ++k) {
                const float at = known == Activation::relu ? factors.normalised(row.x.at(k), k) : ys.at(k);
                result.numbers[k] = times_slope(known, at, row.grad.at(k));
            }
        });
        return result;
    }
    /// Returns the gradients of x.
    [[nodiscard]] FINCH_DEVICE Vector<X, width> of_x(std::int64_t element, const Row& row,
                                                     const BatchNormFactors<width>& factors) const {
        const auto before = at(element, row, factors);
        Vector<X, width> result;
        FINCH_UNROLL for (int k = 0; k < width; ++k) {
            const float centred = row.x.at(k) - factors.mean.at(k);
            result.set(k,
                       before.at(k) * factors.scale.at(k) + centred * factors.of_x.at(k) + factors.shift_of_grad.at(k));
        }
        return result;
    }
};

/// Adds a row's terms of Σ value and Σ value · x.
template <class Term, class Values, class X, int width>
FINCH_DEVICE void add_terms(const Values& values, const Vector<X, width>& xs, Term (&terms)[2][width]) {
    FINCH_UNROLL for (int k = 0; k < width; ++k) {
        const auto value = static_cast<Term>(values.at(k));
        terms[0][k] += value;
        terms[1][k] += value * static_cast<Term>(xs.at(k));
    }
}

/// The type in which a few rows are added, before they are added in double (sum_rows). For bfloat16 x it is float:
/// products in Σ x² are exact.
template <class X>
using BatchNormTerm = std::conditional_t<std::is_same_v<X, float>, double, float>;

/// Computes the mean, scale and shift of each channel, and the factors of backward. `total` is the number of values of
/// the whole batch.
struct BatchNormStatistics {
    std::int64_t channels;
    double momentum;
    double epsilon;
    const float* parameters;           ///< weight, bias
    float* buffers;                    ///< running mean, running variance
    std::int64_t skipped_bias_offset;  ///< BatchNormShape::skipped_bias_offset
    BatchNormMemory memory;

    struct Moments {
        double mean, variance, inverse_deviation;
    };

    /// Returns the moments of the batch or, without values (a part of a batch may be empty), the running ones.
    [[nodiscard]] FINCH_DEVICE Moments moments(std::int64_t c, double sum, double square_sum, double total) const {
        if (total <= 0) {
            return moments_of(double{buffers[c]} - bias_before(c), double{buffers[channels + c]});
        }
        const double mean = sum / total;
        return moments_of(mean, std::fmax(0.0, square_sum / total - mean * mean));
    }
    /// Updates the running mean and (unbiased) variance as torch.nn.BatchNorm does, and writes the mean, inverse
    /// deviation and factors for backward.
    FINCH_DEVICE void keep(std::int64_t c, const Moments& of, double total) const {
        if (total > 0) {
            follow(buffers[c], of.mean + bias_before(c));
            follow(buffers[channels + c], of.variance * total / std::fmax(1.0, total - 1));
        }
        memory.mean[c] = of.mean;
        memory.inverse_deviation[c] = of.inverse_deviation;
        set_factors(c, of, memory.factors + c, channels);
    }
    /// Writes mean, scale and shift to factors[0], factors[stride] and factors[2 · stride].
    FINCH_DEVICE void set_factors(std::int64_t c, const Moments& of, float* factors, std::int64_t stride) const {
        factors[0] = static_cast<float>(of.mean);
        factors[stride] = static_cast<float>(static_cast<double>(parameters[c]) * of.inverse_deviation);
        factors[2 * stride] = parameters[channels + c];
    }
    /// Returns Σ grad · normalised x. `grad_x_sum`: Σ grad · x.
    [[nodiscard]] FINCH_DEVICE double normalised_sum(std::int64_t c, double grad_sum, double grad_x_sum) const {
        return (grad_x_sum - memory.mean[c] * grad_sum) * memory.inverse_deviation[c];
    }
    FINCH_DEVICE void set_gradients(std::int64_t c, double grad_sum, double normalised, float* grad_parameters) const {
        grad_parameters[c] = static_cast<float>(normalised);
        grad_parameters[channels + c] = static_cast<float>(grad_sum);
        if (skipped_bias_offset != 0) {
            grad_parameters[skipped_bias_offset + c] = 0.0F;
        }
    }
    /// Writes of_x and shift_of_grad to factors[3 · stride] and factors[4 · stride].
    FINCH_DEVICE void set_grad_factors(std::int64_t c, double grad_sum, double normalised, double total, float* factors,
                                       std::int64_t stride) const {
        const double factor = static_cast<double>(parameters[c]) * memory.inverse_deviation[c];
        const double n = std::fmax(1.0, total);
        factors[3 * stride] = static_cast<float>(-factor * memory.inverse_deviation[c] * normalised / n);
        factors[4 * stride] = static_cast<float>(-factor * grad_sum / n);
    }

private:
    [[nodiscard]] FINCH_DEVICE double bias_before(std::int64_t c) const {
        return skipped_bias_offset == 0 ? 0.0 : static_cast<double>(parameters[skipped_bias_offset + c]);
    }
    [[nodiscard]] FINCH_DEVICE Moments moments_of(double mean, double variance) const {
        return {mean, variance, 1.0 / std::sqrt(variance + epsilon)};
    }
    FINCH_DEVICE void follow(float& running, double value) const {
        running = static_cast<float>((1 - momentum) * static_cast<double>(running) + momentum * value);
    }
};

/// The kernel that adds the partial sums of this rank, if there are many parts or several ranks. One warp adds the sums
/// of one channel. In backward (`grad_parameters` is not null) the kernel also writes `grad_parameters`.
struct BatchNormTotals {
    static constexpr int max_threads = 256;
    const StepState* state;
    std::int64_t pixels;
    int parts;
    const double* partial;
    double* sums;            ///< (2·channels + 1): both sums, and the number of values
    float* grad_parameters;  ///< weight, bias
    BatchNormStatistics statistics;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t channels = statistics.channels;
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
        sums[channel] = sum;
        sums[channels + channel] = product;
        if (channel == 0) {
            sums[2 * channels] = static_cast<double>(state->current.samples * pixels);
        }
        if (grad_parameters != nullptr) {
            const double normalised = statistics.normalised_sum(channel, sum, product);
            statistics.set_gradients(channel, sum, normalised, grad_parameters);
        }
    }
};

}  // namespace finch::backend::cuda
