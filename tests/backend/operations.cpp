#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "finch/backend/device.hpp"
#include "finch/backend/operation.hpp"

#include "backend/tensors.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <string>

using namespace finch;
using namespace finch::backend;
using reference::Tensor;

namespace {

constexpr double tolerance = 1e-5;  ///< of each tensor's largest entry
constexpr Activation activations[] = {Activation::none, Activation::relu, Activation::sigmoid, Activation::tanh};

std::unique_ptr<Operation> make(Device& device, const ConvolutionShape& shape) {
    return device.convolution(shape);
}
std::unique_ptr<Operation> make(Device& device, const PoolingShape& shape) {
    return device.pooling(shape);
}
std::unique_ptr<Operation> make(Device& device, const LinearShape& shape) {
    return device.linear(shape);
}
std::unique_ptr<Operation> make(Device& device, const ActivationShape& shape) {
    return device.activation(shape);
}

bool needs_input_grad(const auto& shape) {
    if constexpr (requires { shape.needs_input_grad; }) {
        return shape.needs_input_grad;
    }
    return true;
}

Buffer on_device(Device& device, const Tensor& values) {
    Buffer buffer = device.allocate(values.size());
    device.upload(std::vector<float>(values.begin(), values.end()), buffer.data());
    return buffer;
}

Tensor from_device(Device& device, const Buffer& buffer) {
    std::vector<float> values(buffer.size());
    device.synchronize();
    device.download(buffer.data(), values);
    return Tensor(values.begin(), values.end());
}

/// An operation with its tensors on the device and the same values in double. Outputs start as 77, so that adding to
/// what was there is seen.
template <class Shape>
struct Trial {
    Trial(Device& on, const Shape& of, std::uint64_t id)
        : device(on), shape(of), random(13, Purpose::test, id), operation(make(device, shape)) {
        x = normal_tensor(random, input_size(shape));
        parameters = normal_tensor(random, parameter_count(shape), 0.2);
        expected = reference::forward(shape, x, parameters);
        device_x = on_device(device, x);
        device_parameters = on_device(device, parameters);
        device_y = on_device(device, Tensor(expected.size(), 77));
        operation->pack(device_parameters.data());
    }

    void check_forward() {
        operation->forward(device_x.data(), device_y.data());
        CHECK(difference(from_device(device, device_y), expected) < tolerance);
    }

    /// The oracle's derivative is taken at the device's own y: a relu that rounding flips is no fault of backward.
    void check_backward() {
        const Tensor y = from_device(device, device_y);
        const Tensor grad_y = normal_tensor(random, y.size());
        const reference::Gradients gradients = reference::backward(shape, x, parameters, y, grad_y);
        Buffer device_grad_y = on_device(device, grad_y);
        Buffer grad_x = on_device(device, Tensor(x.size(), 77));
        Buffer grad_parameters = on_device(device, Tensor(parameters.size(), 77));

        operation->backward(device_x.data(), device_y.data(), device_grad_y.data(), grad_x.data(),
                            grad_parameters.data());

        if (needs_input_grad(shape)) {
            CHECK(difference(from_device(device, grad_x), gradients.x) < tolerance);
        }
        const Tensor actual = from_device(device, grad_parameters);
        const auto biases = biases_of(shape);
        const auto split = static_cast<std::ptrdiff_t>(parameters.size() - biases);
        const Tensor& wanted = gradients.parameters;
        CHECK(difference(Tensor(actual.begin(), actual.begin() + split),
                         Tensor(wanted.begin(), wanted.begin() + split)) < tolerance);
        CHECK(difference(Tensor(actual.begin() + split, actual.end()), Tensor(wanted.begin() + split, wanted.end())) <
              tolerance);
    }

    static std::size_t biases_of(const auto& of) {
        if constexpr (requires { of.channels_out; }) {
            return static_cast<std::size_t>(of.channels_out);
        } else if constexpr (requires { of.units; }) {
            return static_cast<std::size_t>(of.units);
        }
        return 0;
    }

    Device& device;
    Shape shape;
    RandomStream random;
    std::unique_ptr<Operation> operation;
    Tensor x, parameters, expected;
    Buffer device_x, device_parameters, device_y;
};

template <class Shape>
void check(Device& device, const Shape& shape) {
    Trial<Shape> trial(device, shape, 1);
    CAPTURE(trial.operation->implementation());
    trial.check_forward();
    trial.check_backward();
}

bool has_avx2() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") != 0;
#else
    return false;
#endif
}

}  // namespace

TEST_CASE("convolution: kernels, strides and channels give the reference's output and gradients") {
    const auto device = make_cpu_device(1);
    for (const std::int64_t kernel : {1, 2, 3, 5})
        for (const std::int64_t stride : {1, 2})
            for (const auto& [in, out] : {std::pair{1, 10}, {10, 10}, {3, 17}, {17, 1}, {16, 3}}) {
                CAPTURE(kernel);
                CAPTURE(stride);
                CAPTURE(in);
                CAPTURE(out);
                check(*device, ConvolutionShape{.batch = 3,
                                                .height = 9,
                                                .width = 12,
                                                .channels_in = in,
                                                .channels_out = out,
                                                .kernel = kernel,
                                                .stride = stride,
                                                .padding_before = (kernel - 1) / 2,
                                                .padding_after = kernel / 2,
                                                .activation = Activation::relu});
            }
}

TEST_CASE("convolution: every activation, batch and padding gives the reference's output and gradients") {
    const auto device = make_cpu_device(1);
    for (const Activation activation : activations)
        for (const std::int64_t batch : {1, 3, 8})
            for (const auto& [before, after] : {std::pair{0, 0}, {0, 1}, {2, 1}}) {
                CAPTURE(static_cast<int>(activation));
                CAPTURE(batch);
                CAPTURE(before);
                check(*device, ConvolutionShape{.batch = batch,
                                                .height = 7,
                                                .width = 10,
                                                .channels_in = 10,
                                                .channels_out = 10,
                                                .kernel = 3,
                                                .padding_before = before,
                                                .padding_after = after,
                                                .activation = activation});
            }
}

TEST_CASE("convolution: without a gradient of its input the parameters' gradients stay right") {
    const auto device = make_cpu_device(1);

    check(*device, ConvolutionShape{.batch = 8,
                                    .height = 28,
                                    .width = 28,
                                    .channels_in = 1,
                                    .channels_out = 10,
                                    .kernel = 3,
                                    .padding_before = 1,
                                    .padding_after = 1,
                                    .activation = Activation::relu,
                                    .needs_input_grad = false});
}

TEST_CASE("pooling: windows, strides and padding give the reference's output and gradients") {
    const auto device = make_cpu_device(1);
    for (const Pooling kind : {Pooling::max, Pooling::average})
        for (const std::int64_t channels : {1, 3, 10, 17})
            for (const auto& [kernel, stride, padding] :
                 {std::tuple{2, 2, 0}, {2, 1, 0}, {3, 2, 1}, {3, 1, 1}, {5, 2, 2}, {3, 2, 0}}) {
                CAPTURE(static_cast<int>(kind));
                CAPTURE(channels);
                CAPTURE(kernel);
                CAPTURE(stride);
                check(*device, PoolingShape{.kind = kind,
                                            .batch = 3,
                                            .height = 9,
                                            .width = 12,
                                            .channels = channels,
                                            .kernel = kernel,
                                            .stride = stride,
                                            .padding = padding});
            }
}

TEST_CASE("linear: odd shapes and every activation give the reference's output and gradients") {
    const auto device = make_cpu_device(1);
    for (const Activation activation : activations)
        for (const std::int64_t channels : {1, 3, 10, 17})
            for (const std::int64_t batch : {1, 3, 8}) {
                CAPTURE(static_cast<int>(activation));
                CAPTURE(channels);
                CAPTURE(batch);
                check(*device, LinearShape{.batch = batch,
                                           .height = 5,
                                           .width = 7,
                                           .channels = channels,
                                           .units = 10,
                                           .activation = activation});
                check(*device,
                      LinearShape{.batch = batch, .channels = 33, .units = channels, .activation = activation});
            }
}

TEST_CASE("linear: without a gradient of its input the parameters' gradients stay right") {
    const auto device = make_cpu_device(1);

    check(*device, LinearShape{.batch = 3,
                               .height = 4,
                               .width = 5,
                               .channels = 3,
                               .units = 7,
                               .activation = Activation::tanh,
                               .needs_input_grad = false});
}

TEST_CASE("activation: every kind gives the reference's output and gradient") {
    const auto device = make_cpu_device(1);
    for (const Activation activation : activations)
        for (const std::int64_t count : {1, 17, 1000}) {
            CAPTURE(static_cast<int>(activation));
            check(*device, ActivationShape{.count = count, .activation = activation});
        }
}

TEST_CASE("operations of one shape keep their own parameters and what forward left for backward") {
    const auto device = make_cpu_device(1);
    const ConvolutionShape convolution{.batch = 2,
                                       .height = 6,
                                       .width = 5,
                                       .channels_in = 3,
                                       .channels_out = 4,
                                       .kernel = 3,
                                       .activation = Activation::relu};
    const PoolingShape pooling{.batch = 2, .height = 6, .width = 6, .channels = 3};
    Trial first(*device, convolution, 1);
    Trial second(*device, convolution, 2);
    Trial third(*device, pooling, 3);
    Trial fourth(*device, pooling, 4);

    first.check_forward();
    second.check_forward();
    third.check_forward();
    fourth.check_forward();

    first.check_backward();
    second.check_backward();
    third.check_backward();
    fourth.check_backward();
}

TEST_CASE("pack: new parameters replace the old ones") {
    const auto device = make_cpu_device(1);
    const ConvolutionShape shape{.batch = 2,
                                 .height = 6,
                                 .width = 5,
                                 .channels_in = 10,
                                 .channels_out = 10,
                                 .kernel = 3,
                                 .activation = Activation::tanh};
    Trial trial(*device, shape, 1);
    trial.check_forward();

    trial.parameters = normal_tensor(trial.random, parameter_count(shape), 0.2);
    trial.expected = reference::forward(shape, trial.x, trial.parameters);
    trial.device_parameters = on_device(*device, trial.parameters);
    trial.operation->pack(trial.device_parameters.data());

    trial.check_forward();
    trial.check_backward();
}

TEST_CASE("convolution: kernels wider than a chunk of channels and many outputs give the reference's gradients") {
    const auto device = make_cpu_device(1);
    for (const auto& [in, out] : {std::pair{11, 25}, {24, 10}, {17, 17}, {33, 5}, {10, 16}, {40, 13}})
        for (const std::int64_t kernel : {1, 3}) {
            CAPTURE(in);
            CAPTURE(out);
            CAPTURE(kernel);
            check(*device, ConvolutionShape{.batch = 2,
                                            .height = 6,
                                            .width = 7,
                                            .channels_in = in,
                                            .channels_out = out,
                                            .kernel = kernel,
                                            .padding_before = kernel / 2,
                                            .padding_after = kernel / 2,
                                            .activation = Activation::tanh});
        }
}

TEST_CASE("convolution: gradients have the same bits each time, on two threads too") {
    const auto device = make_cpu_device(2);
    const ConvolutionShape shape{.batch = 7,
                                 .height = 12,
                                 .width = 9,
                                 .channels_in = 10,
                                 .channels_out = 10,
                                 .kernel = 3,
                                 .padding_before = 1,
                                 .padding_after = 1,
                                 .activation = Activation::relu};
    Trial trial(*device, shape, 5);
    trial.check_forward();
    const Tensor grad_y = normal_tensor(trial.random, trial.expected.size());
    const auto gradient = [&] {
        const Buffer device_grad_y = on_device(*device, grad_y);
        const Buffer grad_x = device->allocate(trial.x.size());
        const Buffer grad_parameters = device->allocate(trial.parameters.size());
        trial.operation->backward(trial.device_x.data(), trial.device_y.data(), device_grad_y.data(), grad_x.data(),
                                  grad_parameters.data());
        return from_device(*device, grad_parameters);
    };

    const Tensor first = gradient();

    for (int again = 0; again < 20; ++again) {
        CHECK(gradient() == first);
    }
}

TEST_CASE("the tutorial's layers give the reference's output and gradients, on one thread and on two") {
    for (const int threads : {1, 2}) {
        const auto device = make_cpu_device(threads);
        check(*device, ConvolutionShape{8, 28, 28, 10, 10, 3, 1, 1, 1, Activation::relu});
        check(*device, LinearShape{8, 28, 28, 10, 10});
    }
}

TEST_CASE("convolutions of the tutorial's network run on neither gemm nor reference code" *
          doctest::skip(!has_avx2())) {
    const auto device = make_cpu_device(1);
    for (const std::int64_t batch : {8, 16})
        for (const std::int64_t channels : {1, 10})
            for (const Activation activation : {Activation::relu, Activation::sigmoid, Activation::tanh}) {
                const auto operation = device->convolution({.batch = batch,
                                                            .height = 28,
                                                            .width = 28,
                                                            .channels_in = channels,
                                                            .channels_out = 10,
                                                            .kernel = 3,
                                                            .padding_before = 1,
                                                            .padding_after = 1,
                                                            .activation = activation,
                                                            .needs_input_grad = channels != 1});
                const std::string implementation = operation->implementation();
                CAPTURE(implementation);
                CHECK(!implementation.empty());
                CHECK(implementation.find("gemm") == std::string::npos);
                CHECK(implementation.find("ref") == std::string::npos);
            }
}
