#pragma once

#include "support/wrapped_device.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

namespace finch::test {

/// Runs ahead as a GPU does, at its worst: a program is done only when somebody waits for the device. Until then its
/// sums are not a number, and a Feed refuses to be filled anew.
class LaggingDevice : public WrappedDevice {
public:
    [[nodiscard]] bool runs_ahead() const override { return true; }
    void upload(std::span<const float> from, float* to) override {
        LaggingDevice::synchronize();
        WrappedDevice::upload(from, to);
    }
    void download(const float* from, std::span<float> to) override {
        LaggingDevice::synchronize();
        WrappedDevice::download(from, to);
    }
    [[nodiscard]] std::unique_ptr<backend::Feed> make_feed(const backend::Images& images, std::int64_t batch) override {
        return std::make_unique<LaggingFeed>(*this, WrappedDevice::make_feed(images, batch));
    }
    void gather(backend::Feed& feed, float* out) override { WrappedDevice::gather(inner(feed), out); }
    void softmax_cross_entropy(backend::Feed& feed, const float* logits, std::int64_t classes, float* grad) override {
        WrappedDevice::softmax_cross_entropy(inner(feed), logits, classes, grad);
    }
    void optimizer_step(backend::Feed& feed, float* parameters, const float* grads, float* state_a, float* state_b,
                        std::size_t count) override {
        WrappedDevice::optimizer_step(inner(feed), parameters, grads, state_a, state_b, count);
    }
    [[nodiscard]] std::unique_ptr<backend::Program> record(std::function<void()> work,
                                                           backend::Recording recording) override {
        return std::make_unique<LaggingProgram>(*this, WrappedDevice::record(std::move(work), recording));
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
    struct LaggingFeed : backend::Feed {
        LaggingFeed(LaggingDevice& on, std::unique_ptr<backend::Feed> of) : device(on), feed(std::move(of)) {}
        [[nodiscard]] std::int64_t capacity() const override { return 5; }
        void fill(std::span<const std::int64_t> indices, std::span<const backend::StepNumbers> steps) override {
            if (filled_at == device.waits_) {
                throw std::logic_error("a feed was filled before its steps were done");
            }
            filled_at = device.waits_;
            feed->fill(indices, steps);
        }
        [[nodiscard]] backend::LossSums sums() const override {
            backend::LossSums sums = feed->sums();
            if (!device.waiting_.empty()) {
                sums.loss = std::numeric_limits<double>::quiet_NaN();
            }
            return sums;
        }
        void set_sums(const backend::LossSums& sums) override { feed->set_sums(sums); }

        LaggingDevice& device;
        std::unique_ptr<backend::Feed> feed;
        std::int64_t filled_at = -1;  ///< by how often somebody had waited
    };

    struct LaggingProgram : backend::Program {
        LaggingProgram(LaggingDevice& on, std::unique_ptr<backend::Program> of) : device(on), program(std::move(of)) {}
        void run(std::int64_t times) override {
            device.waiting_.push_back([this, times] { program->run(times); });
        }
        [[nodiscard]] double seconds() const override { return program->seconds(); }

        LaggingDevice& device;
        std::unique_ptr<backend::Program> program;
    };

    static backend::Feed& inner(backend::Feed& feed) { return *dynamic_cast<LaggingFeed&>(feed).feed; }

    std::deque<std::function<void()>> waiting_;
    std::int64_t waits_ = 0;
};

}  // namespace finch::test
