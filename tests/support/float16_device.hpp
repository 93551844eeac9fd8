#pragma once

#include "finch/backend/device.hpp"

#include "support/float16.hpp"
#include "support/reference.hpp"
#include "support/wrapped_device.hpp"

#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace finch::test {

/// An operation with weights that rounds the factors of products (x, weights, gradient before the activation) to
/// float16 and sums in float32. Biases and their gradients are not rounded. A convolution also rounds the sums of
/// forward and of the gradient of x, and its gradients of weights are those of the unrounded factors.
class Float16Operation : public backend::Operation {
public:
    template <class Shape>
    Float16Operation(WrappedDevice& device, Shape shape, std::size_t inputs, std::size_t outputs, std::size_t weights,
                     std::size_t channels)
        : activation_(shape.activation),
          weights_(weights),
          x_(inputs),
          grad_y_(outputs),
          parameters_(weights + channels) {
        is_convolution_ = std::is_same_v<Shape, backend::ConvolutionShape>;
        shape.activation = backend::Activation::none;
        exact_ = device.make_exact(shape);
    }

    void pack(const float* parameters, float* buffers) override {
        parameters_.assign(parameters, parameters + parameters_.size());
        round(parameters, parameters_.data(), weights_);
        if (is_convolution_) {
            bias_.assign(parameters_.begin() + static_cast<std::ptrdiff_t>(weights_), parameters_.end());
            std::fill(parameters_.begin() + static_cast<std::ptrdiff_t>(weights_), parameters_.end(), 0.0F);
        }
        exact_->pack(parameters_.data(), buffers);
    }
    void forward(const backend::Pass& pass, std::span<const float* const> x, float* y) override {
        exact_->forward(pass, rounded(x), y);
        for (std::size_t i = 0; i < grad_y_.size(); ++i) {
            y[i] = is_convolution_ ? to_float16(y[i]) + bias_[i % bias_.size()] : y[i];
            y[i] = static_cast<float>(reference::activate(activation_, static_cast<double>(y[i])));
        }
    }
    void backward(const backend::Pass& pass, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override {
        for (std::size_t i = 0; i < grad_y_.size(); ++i) {
            grad_y[i] *= static_cast<float>(reference::slope(activation_, static_cast<double>(y[i])));
        }
        round(grad_y, grad_y_.data(), grad_y_.size());
        exact_->backward(pass, rounded(x), y, grad_y_.data(), grad_x, grad_parameters);
        if (is_convolution_) {
            std::vector<float> ignored(x_.size());
            float* const grad_of_exact_x = ignored.data();
            std::vector<float> grads(grad_y, grad_y + grad_y_.size());
            exact_->backward(pass, x, y, grads.data(), std::span(&grad_of_exact_x, 1), grad_parameters);
            for (float* const grad : grad_x) {
                if (grad != nullptr) {
                    round(grad, grad, x_.size());
                }
            }
        }
        const std::size_t channels = parameters_.size() - weights_;
        std::fill_n(grad_parameters + weights_, channels, 0.0F);
        for (std::size_t i = 0; i < grad_y_.size(); ++i) {
            grad_parameters[weights_ + i % channels] += grad_y[i];
        }
    }
    [[nodiscard]] std::string implementation() const override { return "float16: " + exact_->implementation(); }

private:
    static void round(const float* from, float* to, std::size_t count) {
        std::transform(from, from + count, to, to_float16);
    }
    std::span<const float* const> rounded(std::span<const float* const> x) {
        round(x[0], x_.data(), x_.size());
        rounded_x_ = x_.data();
        return {&rounded_x_, 1};
    }

    backend::Activation activation_;
    std::size_t weights_;
    bool is_convolution_ = false;
    std::vector<float> x_, grad_y_, parameters_;
    std::vector<float> bias_;  ///< of a convolution
    const float* rounded_x_ = nullptr;
    std::unique_ptr<backend::Operation> exact_;  ///< float32, without the activation
};

/// A CPU device that emulates float16 with exact rounding. `overflows` contains numbers of training batches, from 1.
/// The loss gradients of these batches exceed the range of float16.
class Float16Device : public WrappedDevice {
public:
    explicit Float16Device(std::set<int> overflows = {}) : overflows_(std::move(overflows)) {}

    [[nodiscard]] bool supports(backend::Precision precision) const override {
        return precision == backend::Precision::float16 || WrappedDevice::supports(precision);
    }
    [[nodiscard]] std::unique_ptr<backend::Operation> make(const backend::OperationShape& shape) override {
        if (const auto* of = std::get_if<backend::ConvolutionShape>(&shape); of != nullptr && rounds(*of)) {
            return std::make_unique<Float16Operation>(
                *this, *of, size(of->batch * of->height * of->width * of->channels_in),
                size(of->batch * of->height_out() * of->width_out() * of->channels_out), size(of->weights()),
                size(of->channels_out));
        }
        if (const auto* of = std::get_if<backend::LinearShape>(&shape); of != nullptr && rounds(*of)) {
            const std::int64_t features = of->height * of->width * of->channels;
            return std::make_unique<Float16Operation>(*this, *of, size(of->batch * features),
                                                      size(of->batch * of->units), size(of->units * features),
                                                      size(of->units));
        }
        return WrappedDevice::make(shape);
    }
    void softmax_cross_entropy(backend::StepContext& step, const float* logits, std::int64_t columns,
                               float* grad) override {
        WrappedDevice::softmax_cross_entropy(step, logits, columns, grad);
        if (grad != nullptr && overflows_.contains(++batches_)) {
            grad[0] = 1e9F;
        }
    }

private:
    static bool rounds(const auto& shape) { return shape.precision == backend::Precision::float16; }
    static std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

    std::set<int> overflows_;
    int batches_ = 0;
};

}  // namespace finch::test
