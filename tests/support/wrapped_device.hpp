#pragma once

#include "finch/backend/device.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace finch::test {

/// The CPU, one thread: for devices that differ from it in something that a test is about.
class WrappedDevice : public backend::Device {
public:
    [[nodiscard]] std::string name() const override { return cpu_->name(); }
    [[nodiscard]] bool runs_ahead() const override { return cpu_->runs_ahead(); }
    [[nodiscard]] bool supports(backend::Precision precision) const override { return cpu_->supports(precision); }
    [[nodiscard]] std::unique_ptr<backend::Device> new_stream() override { return cpu_->new_stream(); }
    [[nodiscard]] void* stream() const override { return cpu_->stream(); }
    [[nodiscard]] backend::Buffer allocate(std::size_t floats) override { return cpu_->allocate(floats); }
    [[nodiscard]] std::int64_t free_bytes() const override { return cpu_->free_bytes(); }
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
    [[nodiscard]] std::unique_ptr<backend::Feed> make_feed(const backend::Images& images, std::int64_t batch) override {
        return cpu_->make_feed(images, batch);
    }
    void gather(backend::Feed& feed, float* out) override { cpu_->gather(feed, out); }
    void softmax_cross_entropy(backend::Feed& feed, const float* logits, std::int64_t classes, float* grad) override {
        cpu_->softmax_cross_entropy(feed, logits, classes, grad);
    }
    void optimizer_step(backend::Feed& feed, float* parameters, const float* grads, float* state_a, float* state_b,
                        std::size_t count) override {
        cpu_->optimizer_step(feed, parameters, grads, state_a, state_b, count);
    }
    [[nodiscard]] std::unique_ptr<backend::Program> record(std::function<void()> work,
                                                           backend::Recording recording) override {
        return cpu_->record(std::move(work), recording);
    }
    void synchronize() override { cpu_->synchronize(); }

private:
    std::unique_ptr<backend::Device> cpu_ = backend::make_cpu_device(1);
};

}  // namespace finch::test
