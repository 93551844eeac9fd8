#pragma once

#include "finch/backend/device.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace finch::test {

enum class Failure { exception, nan_loss };

/// The CPU, which fails in the loss of the `when`-th batch (1 is the first).
class FailingDevice : public backend::Device {
public:
    FailingDevice(Failure failure, int when) : failure_(failure), left_(when) {}

    [[nodiscard]] std::string name() const override { return cpu_->name(); }
    [[nodiscard]] backend::Buffer allocate(std::size_t floats) override { return cpu_->allocate(floats); }
    void upload(std::span<const float> from, float* to) override { cpu_->upload(from, to); }
    void download(const float* from, std::span<float> to) override { cpu_->download(from, to); }
    [[nodiscard]] std::unique_ptr<backend::Operation> convolution(const backend::ConvolutionShape& shape) override {
        return cpu_->convolution(shape);
    }
    [[nodiscard]] std::unique_ptr<backend::Operation> pooling(const backend::PoolingShape& shape) override {
        return cpu_->pooling(shape);
    }
    [[nodiscard]] std::unique_ptr<backend::Operation> linear(const backend::LinearShape& shape) override {
        return cpu_->linear(shape);
    }
    [[nodiscard]] std::unique_ptr<backend::Operation> activation(const backend::ActivationShape& shape) override {
        return cpu_->activation(shape);
    }
    void softmax_cross_entropy(const float* logits, std::span<const std::int32_t> labels,
                               std::span<const float> weights, std::int64_t classes, float grad_scale, float* grad,
                               backend::LossSums& sums) override {
        const bool now = --left_ == 0;
        if (now && failure_ == Failure::exception) {
            throw std::runtime_error("the device failed");
        }
        cpu_->softmax_cross_entropy(logits, labels, weights, classes, grad_scale, grad, sums);
        if (now) {
            sums.loss = std::numeric_limits<double>::quiet_NaN();
        }
    }
    void optimizer_step(const backend::OptimizerStep& step, float* parameters, const float* grads, float* state_a,
                        float* state_b, std::size_t count) override {
        cpu_->optimizer_step(step, parameters, grads, state_a, state_b, count);
    }
    void gather_normalised(std::span<const std::uint8_t> pixels, std::int64_t pixels_per_image,
                           std::span<const std::int64_t> indices, std::span<const float> mean,
                           std::span<const float> deviation, float* out) override {
        cpu_->gather_normalised(pixels, pixels_per_image, indices, mean, deviation, out);
    }
    void synchronize() override { cpu_->synchronize(); }

private:
    std::unique_ptr<backend::Device> cpu_ = backend::make_cpu_device(1);
    Failure failure_;
    int left_;
};

}  // namespace finch::test
