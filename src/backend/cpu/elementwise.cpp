#include "elementwise.hpp"

#include "operations.hpp"
#include "vectorised.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

namespace finch::backend::cpu {
namespace {

FINCH_VECTORISED void relu_derivative(const float* __restrict y, float* __restrict grad, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        grad[i] = y[i] > 0.0F ? grad[i] : 0.0F;
    }
}

FINCH_VECTORISED void sigmoid_derivative(const float* __restrict y, float* __restrict grad, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        grad[i] *= y[i] * (1.0F - y[i]);
    }
}

FINCH_VECTORISED void tanh_derivative(const float* __restrict y, float* __restrict grad, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        grad[i] *= (1.0F - y[i]) * (1.0F + y[i]);  // 1 − y² cancels near ±1
    }
}

FINCH_VECTORISED void relu(const float* x, float* y, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        y[i] = x[i] > 0.0F ? x[i] : 0.0F;
    }
}

/// The factors of exp(x) = power · (1 + rest). With x = n ln 2 + r and r in [−ln 2 / 2, ln 2 / 2], power is 2ⁿ and rest
/// is exp(r) − 1. The result is valid for |x| ≤ 87. If x is NaN, `rest` is NaN. The code has no branches and no calls,
/// so that loops over it are vectorised. The error is 1 unit in the last place.
struct Exponential {
    float power;
    float rest;
};
inline Exponential exponential(float x) {
    constexpr float per_ln2 = 1.44269504F;
    constexpr float ln2_high = 0.693359375F;  // 9 bits, so that n · ln2_high is exact
    constexpr float ln2_low = -2.12194440e-4F;
    constexpr float rounds = 12582912.0F;  // 1.5 · 2²³: adding it rounds a number to an integer
    constexpr std::int32_t exponent_bias = 127;
    constexpr int fraction_bits = 23;
    const float shifted = x * per_ln2 + rounds;
    const float n = shifted - rounds;
    const float r = (x - n * ln2_high) - n * ln2_low;
    const std::int32_t whole = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(rounds);
    // Taylor series: the first omitted term is below 5e-9.
    const float tail = 1.0F / 2 + r * (1.0F / 6 + r * (1.0F / 24 + r * (1.0F / 120 + r * (1.0F / 720 + r / 5040))));
    return {std::bit_cast<float>((whole + exponent_bias) << fraction_bits), r + r * r * tail};
}

/// Returns `x` limited to [low, high], or NaN if `x` is NaN.
inline float clamped(float x, float low, float high) {
    const float above = x < low ? low : x;
    return above > high ? high : above;
}

FINCH_VECTORISED void sigmoid(const float* x, float* y, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const Exponential e = exponential(clamped(-x[i], -87.0F, 87.0F));
        y[i] = 1.0F / (1.0F + (e.power + e.power * e.rest));
    }
}

/// Computes (exp(2x) − 1) / (exp(2x) + 1). The numerator keeps full precision if x is small.
FINCH_VECTORISED void hyperbolic_tangent(const float* x, float* y, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const Exponential e = exponential(clamped(2.0F * x[i], -20.0F, 20.0F));
        const float less_one = (e.power - 1.0F) + e.power * e.rest;
        y[i] = less_one / (less_one + 2.0F);
    }
}

FINCH_VECTORISED void add(const float* __restrict a, const float* __restrict b, float* __restrict y,
                          std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        y[i] = a[i] + b[i];
    }
}

FINCH_VECTORISED void add_to(const float* __restrict from, float* __restrict to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        to[i] += from[i];
    }
}

class ElementwiseActivation : public Operation {
public:
    explicit ElementwiseActivation(const ActivationShape& shape)
        : activation_(shape.activation), count_(static_cast<std::size_t>(shape.count)) {}
    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        apply_activation(activation_, x[0], y, count_);
    }
    void backward(const Pass& /*pass*/, std::span<const float* const> /*x*/, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        apply_derivative(activation_, y, grad_y, count_);
        std::memcpy(grad_x[0], grad_y, count_ * sizeof(float));
    }
    [[nodiscard]] std::string implementation() const override { return "finch:loop"; }

private:
    Activation activation_;
    std::size_t count_;
};

class AddOperation : public Operation {
public:
    explicit AddOperation(const AddShape& shape)
        : activation_(shape.activation), count_(static_cast<std::size_t>(shape.count)) {}
    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        add(x[0], x[1], y, count_);
        apply_activation(activation_, y, y, count_);
    }
    void backward(const Pass& /*pass*/, std::span<const float* const> /*x*/, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        apply_derivative(activation_, y, grad_y, count_);
        for (float* grad : grad_x) {
            if (grad != nullptr) {
                std::memcpy(grad, grad_y, count_ * sizeof(float));
            }
        }
    }
    [[nodiscard]] std::string implementation() const override { return "finch:loop"; }

private:
    Activation activation_;
    std::size_t count_;
};

}  // namespace

void apply_activation(Activation activation, const float* x, float* y, std::size_t count) {
    switch (fused(activation)) {
        case FusedActivation::none:
            if (x != y) {
                std::memcpy(y, x, count * sizeof(float));
            }
            return;
        case FusedActivation::relu:
            relu(x, y, count);
            return;
        case FusedActivation::sigmoid:
            sigmoid(x, y, count);
            return;
        case FusedActivation::tanh:
            hyperbolic_tangent(x, y, count);
            return;
    }
}

void apply_derivative(Activation activation, const float* y, float* grad_y, std::size_t count) {
    switch (fused(activation)) {
        case FusedActivation::none:
            return;
        case FusedActivation::relu:
            relu_derivative(y, grad_y, count);
            return;
        case FusedActivation::sigmoid:
            sigmoid_derivative(y, grad_y, count);
            return;
        case FusedActivation::tanh:
            tanh_derivative(y, grad_y, count);
            return;
    }
}

void accumulate(const float* from, float* to, std::size_t count) {
    add_to(from, to, count);
}

std::unique_ptr<Operation> make_activation_loop(const ActivationShape& shape) {
    return std::make_unique<ElementwiseActivation>(shape);
}

template <>
std::unique_ptr<Operation> make(const Library& /*library*/, Plans& /*plans*/, const AddShape& shape) {
    return std::make_unique<AddOperation>(shape);
}

}  // namespace finch::backend::cpu
