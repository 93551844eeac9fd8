#pragma once

#include "support/wrapped_device.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

namespace finch::test {

/// A device that delays all work like a very slow GPU: captured steps run only in synchronize(). Until then the sums
/// are NaN, and a StepContext cannot be filled again.
class LaggingDevice : public WrappedDevice {
public:
    [[nodiscard]] bool runs_ahead() const override { return true; }
    /// Computes in float32: a device may be more exact than the precision requires.
    [[nodiscard]] bool supports(backend::Precision) const override { return true; }
    void upload(std::span<const float> from, float* to) override {
        LaggingDevice::synchronize();
        WrappedDevice::upload(from, to);
    }
    void download(const float* from, std::span<float> to) override {
        LaggingDevice::synchronize();
        WrappedDevice::download(from, to);
    }
    [[nodiscard]] std::unique_ptr<backend::StepContext> make_step_context(const backend::Images& images,
                                                                          std::int64_t batch) override {
        return std::make_unique<LaggingContext>(*this, WrappedDevice::make_step_context(images, batch));
    }
    void next_step(backend::StepContext& step) override { WrappedDevice::next_step(inner(step)); }
    void load_batch(backend::StepContext& step, float* out) override { WrappedDevice::load_batch(inner(step), out); }
    void softmax_cross_entropy(backend::StepContext& step, const float* logits, std::int64_t classes,
                               float* grad) override {
        WrappedDevice::softmax_cross_entropy(inner(step), logits, classes, grad);
    }
    void regression_loss(backend::StepContext& step, backend::Regression kind, const float* predictions,
                         std::int64_t outputs, float* grad) override {
        WrappedDevice::regression_loss(inner(step), kind, predictions, outputs, grad);
    }
    void unscale(backend::StepContext& step, float* grads, std::size_t count) override {
        WrappedDevice::unscale(inner(step), grads, count);
    }
    void optimizer_step(backend::StepContext& step, const backend::Optimizer& optimizer,
                        std::span<const backend::ParameterRange> ranges, float* parameters, const float* grads,
                        float* state_a, float* state_b) override {
        WrappedDevice::optimizer_step(inner(step), optimizer, ranges, parameters, grads, state_a, state_b);
    }
    void average(backend::StepContext& step, const float* values, float* averages, std::size_t count) override {
        WrappedDevice::average(inner(step), values, averages, count);
    }
    [[nodiscard]] std::unique_ptr<backend::CapturedStep> capture(std::function<void()> work,
                                                                 backend::CaptureAs how) override {
        return std::make_unique<LaggingStep>(*this, WrappedDevice::capture(std::move(work), how));
    }
    void synchronize() override {
        ++waits_;
        while (!waiting_.empty()) {
            const auto work = std::move(waiting_.front());
            waiting_.pop_front();
            work();
        }
    }

private:
    struct LaggingContext : backend::StepContext {
        LaggingContext(LaggingDevice& on, std::unique_ptr<backend::StepContext> of)
            : device(on), context(std::move(of)) {}
        [[nodiscard]] std::int64_t capacity() const override { return 5; }
        void fill(std::span<const std::int64_t> indices, std::span<const backend::StepScalars> steps) override {
            if (filled_at == device.waits_) {
                throw std::logic_error("it was filled before its steps were done");
            }
            filled_at = device.waits_;
            context->fill(indices, steps);
        }
        void announce(std::span<const std::int64_t> indices) override { context->announce(indices); }
        [[nodiscard]] backend::LossSums sums() const override {
            backend::LossSums sums = context->sums();
            if (!device.waiting_.empty()) {
                sums.loss = std::numeric_limits<double>::quiet_NaN();
            }
            return sums;
        }
        void set_sums(const backend::LossSums& sums) override { context->set_sums(sums); }
        [[nodiscard]] std::vector<std::int32_t> predictions() const override {
            std::vector<std::int32_t> predictions = context->predictions();
            if (!device.waiting_.empty()) {
                predictions.assign(predictions.size(), 0);
            }
            return predictions;
        }
        [[nodiscard]] backend::LossScale loss_scale() const override {
            return device.waiting_.empty() ? context->loss_scale() : backend::LossScale{.scale = 0};
        }
        void set_loss_scale(const backend::LossScale& scale) override { context->set_loss_scale(scale); }

        LaggingDevice& device;
        std::unique_ptr<backend::StepContext> context;
        std::int64_t filled_at = -1;  ///< number of synchronize() calls at that time
    };

    struct LaggingStep : backend::CapturedStep {
        LaggingStep(LaggingDevice& on, std::unique_ptr<backend::CapturedStep> of) : device(on), step(std::move(of)) {}
        void run(std::int64_t times) override {
            device.waiting_.push_back([this, times] { step->run(times); });
        }
        [[nodiscard]] double seconds() const override { return step->seconds(); }

        LaggingDevice& device;
        std::unique_ptr<backend::CapturedStep> step;
    };

    static backend::StepContext& inner(backend::StepContext& step) {
        return *dynamic_cast<LaggingContext&>(step).context;
    }

    std::deque<std::function<void()>> waiting_;
    std::int64_t waits_ = 0;
};

}  // namespace finch::test
