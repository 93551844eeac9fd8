#include "library.hpp"
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
        grad[i] *= 1.0F - y[i] * y[i];
    }
}

/// An activation by itself.
class ActivationOperation : public Operation {
public:
    explicit ActivationOperation(const ActivationShape& shape) : shape_(shape) {}
    void pack(const float*) override {}
    void forward(const float* x, float* y) override {
        const auto count = static_cast<std::size_t>(shape_.count);
        for (std::size_t i = 0; i < count; ++i) {
            switch (shape_.activation) {
                case Activation::none:
                    y[i] = x[i];
                    break;
                case Activation::relu:
                    y[i] = x[i] > 0.0F ? x[i] : 0.0F;
                    break;
                case Activation::sigmoid:
                    y[i] = 1.0F / (1.0F + std::exp(-x[i]));
                    break;
                case Activation::tanh:
                    y[i] = std::tanh(x[i]);
                    break;
            }
        }
    }
    void backward(const float*, const float* y, float* grad_y, float* grad_x, float*) override {
        const auto count = static_cast<std::size_t>(shape_.count);
        apply_derivative(shape_.activation, y, grad_y, count);
        std::memcpy(grad_x, grad_y, count * sizeof(float));
    }
    [[nodiscard]] std::string implementation() const override { return "finch:loop"; }

private:
    ActivationShape shape_;
};

}  // namespace

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
    }
}

std::unique_ptr<Operation> make_activation(const ActivationShape& shape) {
    return std::make_unique<ActivationOperation>(shape);
}

}  // namespace finch::backend::cpu
