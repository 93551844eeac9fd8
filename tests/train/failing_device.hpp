#pragma once

#include "support/wrapped_device.hpp"

#include <limits>
#include <stdexcept>

namespace finch::test {

enum class Failure { exception, exception_before_forward, nan_loss };

/// A device that fails in batch `when` (from 1): it throws in the loss or before the forward pass, or returns a NaN
/// loss.
class FailingDevice : public WrappedDevice {
public:
    FailingDevice(Failure failure, int when) : failure_(failure), left_(when) {}

    void load_batch(backend::StepContext& step, float* out) override {
        if (left_ == 1 && failure_ == Failure::exception_before_forward) {
            left_ = 0;
            throw std::runtime_error("the device failed");
        }
        WrappedDevice::load_batch(step, out);
    }
    void softmax_cross_entropy(backend::StepContext& step, const float* logits, std::int64_t classes,
                               float* grad) override {
        const bool now = --left_ == 0;
        if (now && failure_ == Failure::exception) {
            throw std::runtime_error("the device failed");
        }
        WrappedDevice::softmax_cross_entropy(step, logits, classes, grad);
        if (now) {
            backend::LossSums sums = step.sums();
            sums.loss = std::numeric_limits<double>::quiet_NaN();
            step.set_sums(sums);
        }
    }

private:
    Failure failure_;
    int left_;
};

}  // namespace finch::test
