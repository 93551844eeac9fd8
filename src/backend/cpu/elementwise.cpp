#include "elementwise.hpp"

#include "finch/base/enum_words.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "operations.hpp"
#include "vectorised.hpp"

#include <cmath>
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

class ActivationOperation : public Operation {
public:
    explicit ActivationOperation(const ActivationShape& shape)
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
    switch (activation) {
        case Activation::none:
            if (x != y) {
                std::memcpy(y, x, count * sizeof(float));
            }
            return;
        case Activation::relu:
            relu(x, y, count);
            return;
        case Activation::sigmoid:
            for (std::size_t i = 0; i < count; ++i) {
                y[i] = 1.0F / (1.0F + std::exp(-x[i]));
            }
            return;
        case Activation::tanh:
            for (std::size_t i = 0; i < count; ++i) {
                y[i] = std::tanh(x[i]);
            }
            return;
        case Activation::leaky_relu:
        case Activation::gelu:
        case Activation::silu:
            break;
    }
    throw Error(fmt::format("{} behind another operation", word(activation)));
}

void apply_derivative(Activation activation, const float* y, float* grad_y, std::size_t count) {
    switch (activation) {
        case Activation::none:
            return;
        case Activation::relu:
            relu_derivative(y, grad_y, count);
            return;
        case Activation::sigmoid:
            sigmoid_derivative(y, grad_y, count);
            return;
        case Activation::tanh:
            tanh_derivative(y, grad_y, count);
            return;
        case Activation::leaky_relu:
        case Activation::gelu:
        case Activation::silu:
            break;
    }
    throw Error(fmt::format("the derivative of {} by its output", word(activation)));
}

void accumulate(const float* from, float* to, std::size_t count) {
    add_to(from, to, count);
}

std::unique_ptr<Operation> make_activation_loop(const ActivationShape& shape) {
    return std::make_unique<ActivationOperation>(shape);
}

template <>
std::unique_ptr<Operation> make(const Library& /*library*/, Plans& /*plans*/, const AddShape& shape) {
    return std::make_unique<AddOperation>(shape);
}

}  // namespace finch::backend::cpu
