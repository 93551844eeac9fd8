#pragma once

#include "finch/backend/device.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace finch::test {

/// A CPU device with one thread that computes every batch as one block, in NHWC. Base class of test devices that
/// override some of its functions.
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
    [[nodiscard]] std::unique_ptr<backend::Operation> make(const backend::OperationShape& shape) override {
        return cpu_->make(shape);
    }
    /// Returns the operation of the CPU device, also if a derived class overrides make().
    [[nodiscard]] std::unique_ptr<backend::Operation> make_exact(const backend::OperationShape& shape) {
        return cpu_->make(shape);
    }
    void accumulate(const float* from, float* to, std::size_t count, backend::TensorType type) override {
        cpu_->accumulate(from, to, count, type);
    }
    void clear(float* values, std::size_t count) override { cpu_->clear(values, count); }
    [[nodiscard]] std::unique_ptr<backend::StepContext> make_step_context(const backend::Images& images,
                                                                          std::int64_t batch) override {
        return cpu_->make_step_context(images, batch);
    }
    void next_step(backend::StepContext& step) override { cpu_->next_step(step); }
    void load_batch(backend::StepContext& step, float* out) override { cpu_->load_batch(step, out); }
    void softmax_cross_entropy(backend::StepContext& step, const float* logits, std::int64_t columns,
                               float* grad) override {
        cpu_->softmax_cross_entropy(step, logits, columns, grad);
    }
    void regression_loss(backend::StepContext& step, backend::Regression kind, const float* predictions,
                         std::int64_t outputs, float* grad) override {
        cpu_->regression_loss(step, kind, predictions, outputs, grad);
    }
    void unscale(backend::StepContext& step, float* grads, std::size_t count) override {
        cpu_->unscale(step, grads, count);
    }
    void clip_norm(float* grads, std::size_t count, double most, float* scratch) override {
        cpu_->clip_norm(grads, count, most, scratch);
    }
    void optimizer_step(backend::StepContext& step, const backend::Optimizer& optimizer,
                        std::span<const backend::ParameterRange> ranges, float* parameters, const float* grads,
                        float* state_a, float* state_b) override {
        cpu_->optimizer_step(step, optimizer, ranges, parameters, grads, state_a, state_b);
    }
    void average(backend::StepContext& step, const float* values, float* averages, std::size_t count) override {
        cpu_->average(step, values, averages, count);
    }
    [[nodiscard]] std::unique_ptr<backend::CapturedStep> capture(std::function<void()> work,
                                                                 backend::CaptureAs how) override {
        return cpu_->capture(std::move(work), how);
    }
    void synchronize() override { cpu_->synchronize(); }

private:
    std::unique_ptr<backend::Device> cpu_ = backend::make_cpu_device(1);
};

}  // namespace finch::test
