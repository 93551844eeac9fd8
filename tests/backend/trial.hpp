#pragma once

#include "finch/backend/device.hpp"

#include "backend/make_device.hpp"
#include "backend/tensors.hpp"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <doctest/doctest.h>
#include <memory>
#include <span>
#include <vector>

// Compares an operation on a device with the float64 reference.
namespace finch::test {

using namespace backend;
using reference::Tensor;

inline constexpr double tolerance = 1e-5;  ///< relative to each tensor's largest entry

/// A started step over images of one pixel and one class: `samples` real samples, padded to `batch`.
class TrialStep {
public:
    explicit TrialStep(Device& device, std::int64_t batch = 1, std::int64_t samples = 1, StepScalars scalars = {})
        : pixels_(static_cast<std::size_t>(batch)),
          labels_(pixels_.size()),
          context_(device.make_step_context({.pixels = pixels_, .labels = labels_, .pixels_per_image = 1}, batch)) {
        std::vector<std::int64_t> indices(pixels_.size(), -1);
        std::fill_n(indices.begin(), samples, 0);
        context_->fill(indices, std::span(&scalars, 1));
        begin_step(device, *context_, pixels_.size());
    }
    [[nodiscard]] Pass pass(Mode mode = Mode::training, GroupSum* group = nullptr) {
        return {.step = *context_, .mode = mode, .group = group};
    }
    /// Returns the pass of one of several blocks.
    [[nodiscard]] Pass block(bool is_first, bool is_last) {
        return {.step = *context_, .is_first_block = is_first, .is_last_block = is_last};
    }

private:
    std::vector<std::uint8_t> pixels_;
    std::vector<std::int32_t> labels_;
    std::unique_ptr<StepContext> context_;
};

/// Runs an operation that has one input and no state that differs between steps.
inline void forward(Device& device, Operation& operation, const Buffer& x, const Buffer& y) {
    TrialStep step(device);
    const float* const inputs[] = {x.data()};
    operation.forward(step.pass(), inputs, y.data());
}
inline void backward(Device& device, Operation& operation, const Buffer& x, const Buffer& y, const Buffer& grad_y,
                     const Buffer& grad_x, const Buffer& grad_parameters) {
    TrialStep step(device);
    const float* const inputs[] = {x.data()};
    float* const grads[] = {grad_x.data()};
    operation.backward(step.pass(), inputs, y.data(), grad_y.data(), grads, grad_parameters.data());
    device.finish_deferred();
}

inline bool needs_input_grad(const auto& shape) {
    if constexpr (requires { shape.needs_input_grad; }) {
        return shape.needs_input_grad;
    }
    return true;
}

/// An operation, its tensors on the device, and the same values in double. Outputs are initialised with 77, to detect
/// an operation that adds to its output instead of overwriting it.
template <class Shape>
struct Trial {
    Trial(Device& on, const Shape& of, std::uint64_t id)
        : device(on), shape(of), random(13, Purpose::test, id), operation(device.make(shape)) {
        x = normal_tensor(random, input_size(shape));
        parameters = normal_tensor(random, parameter_count(shape), 0.2);
        expected = reference::forward(shape, x, parameters);
        device_x = on_device(device, x);
        device_parameters = on_device(device, parameters);
        device_y = on_device(device, Tensor(expected.size(), 77));
        operation->pack(device_parameters.data(), nullptr);
    }

    void check_forward() {
        forward(device, *operation, device_x, device_y);
        CHECK(difference(from_device(device, device_y), expected) < most);
    }

    /// Checks backward(). The reference computes the derivative at the device's own y: a relu that flips by rounding in
    /// forward is not an error of backward.
    void check_backward() {
        const std::vector<float> outputs = from_device(device, device_y);
        const Tensor y(outputs.begin(), outputs.end());
        const Tensor grad_y = normal_tensor(random, y.size());
        const reference::Gradients gradients = reference::backward(shape, x, parameters, y, grad_y);
        Buffer device_grad_y = on_device(device, grad_y);
        Buffer grad_x = on_device(device, Tensor(x.size(), 77));
        Buffer grad_parameters = on_device(device, Tensor(parameters.size(), 77));

        backward(device, *operation, device_x, device_y, device_grad_y, grad_x, grad_parameters);

        if (needs_input_grad(shape)) {
            CHECK(difference(from_device(device, grad_x), gradients.x) < most);
        }
        check_parameters(from_device(device, grad_parameters), gradients.parameters);
        if (device.blocks().bytes > 0) {
            check_blocks(grad_y, gradients);
        }
    }

    /// Checks the sums over three equal blocks.
    void check_blocks(const Tensor& grad_y, const reference::Gradients& gradients) {
        Buffer grad_x = on_device(device, Tensor(x.size(), 77));
        Buffer grad_parameters = on_device(device, Tensor(parameters.size(), 77));
        TrialStep step(device);
        for (const Pass& pass : {step.block(true, false), step.block(false, false), step.block(false, true)}) {
            Buffer device_grad_y = on_device(device, grad_y);
            const float* const inputs[] = {device_x.data()};
            float* const grads[] = {grad_x.data()};
            operation->backward(pass, inputs, device_y.data(), device_grad_y.data(), grads, grad_parameters.data());
        }
        if (needs_input_grad(shape)) {
            CHECK(difference(from_device(device, grad_x), gradients.x) < most);
        }
        Tensor three_times = gradients.parameters;
        std::transform(three_times.begin(), three_times.end(), three_times.begin(), [](double one) { return 3 * one; });
        check_parameters(from_device(device, grad_parameters), three_times);
    }

    void check_parameters(const std::vector<float>& actual, const Tensor& wanted) const {
        const auto split = static_cast<std::ptrdiff_t>(parameters.size() - biases_of(shape));
        CHECK(difference(Tensor(actual.begin(), actual.begin() + split),
                         Tensor(wanted.begin(), wanted.begin() + split)) < most);
        CHECK(difference(Tensor(actual.begin() + split, actual.end()), Tensor(wanted.begin() + split, wanted.end())) <
              tolerance);
    }

    static std::size_t biases_of(const auto& of) {
        if constexpr (requires { of.channels_out; }) {
            return static_cast<std::size_t>(of.channels_out);
        } else if constexpr (requires { of.units; }) {
            return static_cast<std::size_t>(of.units);
        } else if constexpr (std::same_as<std::remove_cvref_t<decltype(of)>, LayerNormShape>) {
            return static_cast<std::size_t>(of.channels);
        }
        return 0;
    }

    Device& device;
    Shape shape;
    RandomStream random;
    std::unique_ptr<Operation> operation;
    double most = tolerance;  ///< largest accepted difference
    Tensor x, parameters, expected;
    Buffer device_x, device_parameters, device_y;
};

/// Returns a 3 × 3 convolution that keeps the size of the image: a shape of the CPU backend's own kernels.
inline ConvolutionShape own_shape(std::int64_t batch, std::int64_t height, std::int64_t width, std::int64_t in,
                                  std::int64_t out) {
    return {.batch = batch,
            .height = height,
            .width = width,
            .channels_in = in,
            .channels_out = out,
            .kernel = 3,
            .padding_before = 1,
            .padding_after = 1,
            .activation = Activation::relu};
}

template <class Shape>
void check(Device& device, const Shape& shape) {
    Trial<Shape> trial(device, shape, 1);
    CAPTURE(trial.operation->implementation());
    trial.check_forward();
    trial.check_backward();
}

/// Checks that repeated runs of a convolution's backward() give the same bits.
inline void check_same_gradients(Device& device) {
    const ConvolutionShape shape{.batch = 7,
                                 .height = 12,
                                 .width = 9,
                                 .channels_in = 10,
                                 .channels_out = 10,
                                 .kernel = 3,
                                 .padding_before = 1,
                                 .padding_after = 1,
                                 .activation = Activation::relu};
    Trial trial(device, shape, 5);
    trial.check_forward();
    const Tensor grad_y = normal_tensor(trial.random, trial.expected.size());
    const auto gradient = [&] {
        const Buffer device_grad_y = on_device(device, grad_y);
        const Buffer grad_x = device.allocate(trial.x.size());
        const Buffer grad_parameters = device.allocate(trial.parameters.size());
        backward(device, *trial.operation, trial.device_x, trial.device_y, device_grad_y, grad_x, grad_parameters);
        return from_device(device, grad_parameters);
    };

    const std::vector<float> first = gradient();

    for (int again = 0; again < 20; ++again) {
        CHECK(gradient() == first);
    }
}

}  // namespace finch::test
