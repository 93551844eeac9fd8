#pragma once

#include "finch/backend/operation.hpp"

#include "kernel_launch.hpp"
#include "kernels/numbers.hpp"

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace finch::backend::cuda {

/// Returns the cumulative distribution function of the standard normal distribution at `value`.
[[nodiscard]] FINCH_DEVICE float normal_share(float value) {
    return 0.5F * (1.0F + std::erf(0.70710678F * value));
}

[[nodiscard]] FINCH_DEVICE float activate(Activation activation, float value) {
    switch (activation) {
        case Activation::none:
            break;
        case Activation::relu:
            return value > 0.0F ? value : 0.0F;
        case Activation::sigmoid:
            return 1.0F / (1.0F + std::exp(-value));
        case Activation::tanh:
            return std::tanh(value);
        case Activation::leaky_relu:
            return value > 0.0F ? value : leaky_slope * value;
        case Activation::gelu:
            return value * normal_share(value);
        case Activation::silu:
            return value / (1.0F + std::exp(-value));
    }
    return value;
}

/// Returns `grad` times the activation's derivative. `y` is the activation's output, or its input if needs_its_input()
/// is true for the activation.
[[nodiscard]] FINCH_DEVICE float times_slope(Activation activation, float y, float grad) {
    switch (activation) {
        case Activation::none:
            break;
        case Activation::relu:
            return y > 0.0F ? grad : 0.0F;
        case Activation::sigmoid:
            return grad * (y * (1.0F - y));
        case Activation::tanh:
            return grad * ((1.0F - y) * (1.0F + y));  // 1 − y² would cancel near ±1
        case Activation::leaky_relu:
            return y > 0.0F ? grad : leaky_slope * grad;
        case Activation::gelu:
            return grad * (normal_share(y) + y * 0.39894228F * std::exp(-0.5F * y * y));
        case Activation::silu: {
            const float share = 1.0F / (1.0F + std::exp(-y));
            return grad * (share * (1.0F + y * (1.0F - share)));
        }
    }
    return grad;
}

/// Calls `body` with the activation as a std::integral_constant. Many values then need only one switch.
template <class Body>
FINCH_DEVICE void with_constant(Activation activation, const Body& body) {
    switch (activation) {
        case Activation::none:
            return body(std::integral_constant<Activation, Activation::none>{});
        case Activation::relu:
            return body(std::integral_constant<Activation, Activation::relu>{});
        case Activation::sigmoid:
            return body(std::integral_constant<Activation, Activation::sigmoid>{});
        case Activation::tanh:
            return body(std::integral_constant<Activation, Activation::tanh>{});
        case Activation::leaky_relu:
            return body(std::integral_constant<Activation, Activation::leaky_relu>{});
        case Activation::gelu:
            return body(std::integral_constant<Activation, Activation::gelu>{});
        case Activation::silu:
            return body(std::integral_constant<Activation, Activation::silu>{});
    }
}

/// The kernel that computes y = f(x) or, if `other` is not null, y = f(x + other). `count` is a multiple of `width`.
template <class Number>
struct ElementwiseForward {
    static constexpr int max_threads = 256;
    static constexpr int width = width_of<Number>;
    Activation activation;
    const Number* x;
    const Number* other;  ///< may be null
    Number* y;
    std::int64_t count;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        for (std::int64_t i = thread.global_index() * width; i < count; i += thread.global_count() * width) {
            auto values = load<width>(x + i);
            const auto others = other == nullptr ? Vector<Number, width>{} : load<width>(other + i);
            FINCH_UNROLL for (int k = 0; k < width; ++k) {
                values.set(k, activate(activation, other == nullptr ? values.at(k) : values.at(k) + others.at(k)));
            }
            store(values, y + i);
        }
    }
};

/// The kernel that sets `grad_x` and `grad_other` to grad_y · f′. The derivative f′ is computed from y, or from x if
/// needs_its_input() is true for the activation.
template <class Number>
struct ElementwiseBackward {
    static constexpr int max_threads = 256;
    static constexpr int width = width_of<Number>;
    Activation activation;
    const Number* at;  ///< y, or x if needs_its_input(); not read without an activation
    const Number* grad_y;
    Number* grad_x;  ///< both gradients may be null
    Number* grad_other;
    std::int64_t count;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        for (std::int64_t i = thread.global_index() * width; i < count; i += thread.global_count() * width) {
            auto grads = load<width>(grad_y + i);
            if (activation != Activation::none) {
                const auto values = load<width>(at + i);
                FINCH_UNROLL for (int k = 0; k < width; ++k) {
                    grads.set(k, times_slope(activation, values.at(k), grads.at(k)));
                }
            }
            if (grad_x != nullptr) {
                store(grads, grad_x + i);
            }
            if (grad_other != nullptr) {
                store(grads, grad_other + i);
            }
        }
    }
};

}  // namespace finch::backend::cuda
