#pragma once

#include "finch/backend/operation.hpp"

#include <cmath>
#include <cstdint>
#include <kernel_launch.hpp>

namespace finch::backend::cuda {

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
    }
    return value;
}

/// `grad` times the derivative at the place where the activation gives `y`.
[[nodiscard]] FINCH_DEVICE float times_slope(Activation activation, float y, float grad) {
    switch (activation) {
        case Activation::none:
            break;
        case Activation::relu:
            return y > 0.0F ? grad : 0.0F;
        case Activation::sigmoid:
            return grad * (y * (1.0F - y));
        case Activation::tanh:
            return grad * (1.0F - y * y);
    }
    return grad;
}

/// y = f(x).
struct ActivationForward {
    static constexpr int max_threads = 256;
    Activation activation;
    const float* x;
    float* y;
    std::int64_t count;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            y[i] = activate(activation, x[i]);
        }
    }
};

/// grad_x = grad_y · f′(x), by way of y.
struct ActivationBackward {
    static constexpr int max_threads = 256;
    Activation activation;
    const float* y;
    const float* grad_y;
    float* grad_x;
    std::int64_t count;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            grad_x[i] = times_slope(activation, y[i], grad_y[i]);
        }
    }
};

}  // namespace finch::backend::cuda
