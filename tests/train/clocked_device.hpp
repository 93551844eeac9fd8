#pragma once

#include "support/wrapped_device.hpp"
#include "train/world.hpp"

#include <span>
#include <stdexcept>
#include <utility>

/// A device and an all-reduce with a simulated clock. Only their operations advance the clock.
namespace finch::test {

/// Durations of operations in seconds, the simulated clock, and counters.
struct VirtualClock {
    static constexpr double load = 1;
    static constexpr double loss = 2;
    static constexpr double optimizer = 4;
    static constexpr double forward = 8;    ///< per node
    static constexpr double backward = 16;  ///< per node
    static constexpr double sum = 3;
    static constexpr double wait = 32;  ///< rank 0 waits for the other rank

    double now = 100;
    std::int64_t optimizer_steps = 0;
    std::int64_t batches = 0;
    std::int64_t failing_batch = -1;
};

class ClockedOperation : public backend::Operation {
public:
    ClockedOperation(VirtualClock& clock, std::unique_ptr<backend::Operation> of)
        : clock_(clock), operation_(std::move(of)) {}
    void pack(const float* parameters, float* buffers) override { operation_->pack(parameters, buffers); }
    void forward(const backend::Pass& pass, std::span<const float* const> x, float* y) override {
        clock_.now += VirtualClock::forward;
        operation_->forward(pass, x, y);
    }
    void backward(const backend::Pass& pass, std::span<const float* const> x, const float* y, float* grad_y,
                  std::span<float* const> grad_x, float* grad_parameters) override {
        clock_.now += VirtualClock::backward;
        operation_->backward(pass, x, y, grad_y, grad_x, grad_parameters);
    }
    [[nodiscard]] std::string implementation() const override { return operation_->implementation(); }

private:
    VirtualClock& clock_;
    std::unique_ptr<backend::Operation> operation_;
};

class ClockedDevice : public WrappedDevice {
public:
    explicit ClockedDevice(VirtualClock& clock) : clock_(clock) {}
    [[nodiscard]] std::unique_ptr<backend::Operation> make(const backend::OperationShape& shape) override {
        return std::make_unique<ClockedOperation>(clock_, WrappedDevice::make(shape));
    }
    void load_batch(backend::StepContext& step, float* out) override {
        clock_.now += VirtualClock::load;
        if (++clock_.batches == clock_.failing_batch) {
            throw std::runtime_error("no batch");
        }
        WrappedDevice::load_batch(step, out);
    }
    void softmax_cross_entropy(backend::StepContext& step, const float* logits, std::int64_t outputs,
                               float* grad) override {
        clock_.now += VirtualClock::loss;
        WrappedDevice::softmax_cross_entropy(step, logits, outputs, grad);
    }
    void optimizer_step(backend::StepContext& step, const backend::Optimizer& optimizer,
                        std::span<const backend::ParameterRange> ranges, float* parameters, const float* grads,
                        float* state_a, float* state_b) override {
        clock_.now += VirtualClock::optimizer;
        ++clock_.optimizer_steps;
        WrappedDevice::optimizer_step(step, optimizer, ranges, parameters, grads, state_a, state_b);
    }

private:
    VirtualClock& clock_;
};

/// An all-reduce that takes a fixed time. Rank 0 waits for the other rank first, which is always late.
class ClockedAllReduce : public comm::AllReduce {
public:
    ClockedAllReduce(VirtualClock& clock, const comm::Group& group)
        : clock_(clock), group_(group), mpi_(comm::make_mpi_all_reduce(group, 30.0)) {}
    [[nodiscard]] backend::CaptureAs capture_as() const override { return mpi_->capture_as(); }
    void start(std::span<float> bucket) override { mpi_->start(bucket); }
    void progress() override { mpi_->progress(); }
    void wait() override {
        clock_.now += VirtualClock::sum + (group_.is_leader() ? VirtualClock::wait : 0);
        mpi_->wait();
    }
    void sum(std::span<double> values) override { mpi_->sum(values); }
    void synchronize() override { mpi_->synchronize(); }

private:
    VirtualClock& clock_;
    const comm::Group& group_;
    std::unique_ptr<comm::AllReduce> mpi_;
};

}  // namespace finch::test
