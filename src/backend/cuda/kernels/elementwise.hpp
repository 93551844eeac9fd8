#pragma once

#include "finch/backend/operation.hpp"

#include <cmath>
#include <cstdint>
#include <kernel_launch.hpp>
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

/// The kernel that computes y = f(x) or, if `other` is not null, y = f(x + other).
struct ElementwiseForward {
    static constexpr int max_threads = 256;
    Activation activation;
    const float* x;
    const float* other;  ///< may be null
    float* y;
    std::int64_t count;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            y[i] = activate(activation, other == nullptr ? x[i] : x[i] + other[i]);
        }
    }
};

/// The kernel that sets `grad_x` and `grad_other` to grad_y · f′. The derivative f′ is computed from y, or from x if
/// needs_its_input() is true for the activation.
struct ElementwiseBackward {
    static constexpr int max_threads = 256;
    Activation activation;
    const float* at;  ///< y, or x if needs_its_input()
    const float* grad_y;
    float* grad_x;  ///< both gradients may be null
    float* grad_other;
    std::int64_t count;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            const float grad = times_slope(activation, at[i], grad_y[i]);
            if (grad_x != nullptr) {
                grad_x[i] = grad;
            }
            if (grad_other != nullptr) {
                grad_other[i] = grad;
            }
        }
    }
};

}  // namespace finch::backend::cuda
