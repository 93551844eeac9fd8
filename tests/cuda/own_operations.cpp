// Tests of pooling, activation and the direct linear layer, for GPUs with different numbers of multiprocessors.
#include "backend/tensors.hpp"
#include "cuda/device_array.hpp"
#include "cuda/on_a_gpu.hpp"
#include "operations.hpp"
#include "step_context.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace finch;
using namespace finch::backend;
using namespace finch::backend::cuda;
using finch::test::DeviceArray;
using finch::test::on_a_gpu;
using finch::test::same_in_every_order;
using reference::Tensor;

namespace {

constexpr double tolerance = 1e-5;  ///< relative to each tensor's largest entry

std::vector<float> floats(const Tensor& values) {
    return {values.begin(), values.end()};
}
Tensor doubles(const std::vector<float>& values) {
    return {values.begin(), values.end()};
}

std::unique_ptr<Operation> make(Stream& stream, const LinearShape& shape) {
    return make_direct(stream, shape);
}

/// The outputs of an operation for `x`, and its gradients for `grad_y` at the operation's own y. Buffers are
/// initialised with 77.
struct Outputs {
    std::vector<float> y, grad_x, grad_parameters;
    auto operator<=>(const Outputs&) const = default;
};
template <class Shape>
Outputs run(const Shape& shape, const Tensor& x, const Tensor& parameters, const Tensor& grad_y, int multiprocessors) {
    Stream stream(std::make_shared<Shared>(DeviceFacts{.name = "a GPU", .multiprocessors = multiprocessors}));
    const auto operation = make(stream, shape);
    const DeviceArray device_x(floats(x));
    const DeviceArray device_parameters(floats(parameters));
    const DeviceArray y(std::vector<float>(grad_y.size(), 77));
    const DeviceArray device_grad_y(floats(grad_y));
    const DeviceArray grad_x(std::vector<float>(x.size(), 77));
    const DeviceArray grad_parameters(std::vector<float>(parameters.size(), 77));

    CudaStepContext context(stream, {}, 1);
    const Pass pass{.step = context};
    const float* const inputs[] = {device_x.data()};
    float* const grads[] = {grad_x.data()};
    operation->pack(device_parameters.data(), nullptr);
    operation->forward(pass, inputs, y.data());
    operation->backward(pass, inputs, y.data(), device_grad_y.data(), grads, grad_parameters.data());
    finish_deferred(stream);
    return {y.values(), grad_x.values(), grad_parameters.values()};
}

/// Random inputs for a shape, and the reference's results.
template <class Shape>
struct Example {
    explicit Example(const Shape& of) : shape(of) {
        RandomStream random(13, Purpose::test, 1);
        x = normal_tensor(random, input_size(shape));
        parameters = normal_tensor(random, parameter_count(shape), 0.2);
        y = reference::forward(shape, x, parameters);
        grad_y = normal_tensor(random, y.size());
    }
    [[nodiscard]] Outputs run(int multiprocessors) const {
        return ::run(shape, x, parameters, grad_y, multiprocessors);
    }

    Shape shape;
    Tensor x, parameters, y, grad_y;
};

template <class Shape>
Outputs check(const Shape& shape, int multiprocessors = 16) {
    const Example<Shape> example(shape);
    const Outputs outputs = example.run(multiprocessors);
    // The reference computes the slope at the operation's own y: a relu that flips by rounding in forward is not an
    // error of backward.
    const reference::Gradients gradients =
        reference::backward(shape, example.x, example.parameters, doubles(outputs.y), example.grad_y);
    CHECK(difference(outputs.y, example.y) < tolerance);
    bool needs_input_grad = true;
    if constexpr (requires { shape.needs_input_grad; }) {
        needs_input_grad = shape.needs_input_grad;
    }
    if (needs_input_grad) {
        CHECK(difference(outputs.grad_x, gradients.x) < tolerance);
    } else {
        CHECK(outputs.grad_x == std::vector<float>(outputs.grad_x.size(), 77));
    }
    std::size_t biases = 0;
    if constexpr (requires { shape.units; }) {
        biases = static_cast<std::size_t>(shape.units);
    }
    const auto split = static_cast<std::ptrdiff_t>(outputs.grad_parameters.size() - biases);
    const Tensor& wanted = gradients.parameters;
    const std::vector<float>& actual = outputs.grad_parameters;
    CHECK(difference(Tensor(actual.begin(), actual.begin() + split), Tensor(wanted.begin(), wanted.begin() + split)) <
          tolerance);
    CHECK(difference(Tensor(actual.begin() + split, actual.end()), Tensor(wanted.begin() + split, wanted.end())) <
          tolerance);
    return outputs;
}

}  // namespace

TEST_CASE("pooling: windows, strides and padding give the reference's output and gradients") {
    for (const Pooling kind : {Pooling::max, Pooling::average})
        for (const std::int64_t channels : {1, 3, 17})
            for (const auto& [kernel, stride, padding] :
                 {std::tuple{2, 2, 0}, {2, 1, 0}, {3, 2, 1}, {3, 1, 1}, {5, 2, 2}, {3, 2, 0}, {2, 3, 0}, {3, 4, 1}}) {
                CAPTURE(static_cast<int>(kind));
                CAPTURE(channels);
                CAPTURE(kernel);
                CAPTURE(stride);
                check(PoolingShape{.kind = kind,
                                   .batch = 3,
                                   .height = 9,
                                   .width = 12,
                                   .channels = channels,
                                   .kernel = kernel,
                                   .stride = stride,
                                   .padding = padding});
            }
}

TEST_CASE("pooling: rows with more elements than a block has threads, and a window over the whole image, are right") {
    for (const Pooling kind : {Pooling::max, Pooling::average}) {
        check(PoolingShape{.kind = kind, .batch = 2, .height = 4, .width = 5, .channels = 300});
        check(PoolingShape{.kind = kind, .batch = 2, .height = 7, .width = 7, .channels = 5, .kernel = 7, .stride = 7});
    }
}

TEST_CASE("max pooling: the first of equal maximums gets the gradient") {
    const PoolingShape shape{.height = 4, .width = 4, .kernel = 3, .stride = 1};

    const Outputs outputs = run(shape, Tensor(16, 0.5), {}, Tensor{1, 2, 4, 8}, 16);

    CHECK(outputs.y == std::vector<float>(4, 0.5F));
    CHECK(outputs.grad_x == std::vector<float>{1, 2, 0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("max pooling: NaN is the maximum of its window, but not of other windows") {
    const PoolingShape shape{.height = 2, .width = 4};

    const Outputs outputs = run(shape, Tensor{1, NAN, 3, 2, 9, 1, 1, 1}, {}, Tensor{5, 6}, 16);

    CHECK(std::isnan(outputs.y.at(0)));
    CHECK(outputs.y.at(1) == 3);
    CHECK(outputs.grad_x == std::vector<float>{0, 5, 6, 0, 0, 0, 0, 0});
}

TEST_CASE("max pooling: if all values are minus infinity, the gradient goes to the image, not to the padding") {
    const PoolingShape shape{.height = 2, .width = 2, .kernel = 2, .stride = 2, .padding = 1};

    const Outputs outputs = run(shape, Tensor(4, -INFINITY), {}, Tensor{1, 2, 3, 4}, 16);

    CHECK(outputs.grad_x == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("activation: every kind gives the reference's output and gradient") {
    for (const Activation activation : finch::fused_activations())
        for (const std::int64_t count : {1, 17, 1000}) {
            CAPTURE(static_cast<int>(activation));
            CAPTURE(count);
            check(ActivationShape{.count = count, .activation = activation});
        }
}

TEST_CASE("direct linear: every number of units gives the reference's output and gradients") {
    for (std::int64_t units = 1; units <= 32; ++units) {
        CAPTURE(units);
        const LinearShape shape{.batch = 9, .height = 3, .width = 2, .channels = 5, .units = units};
        CHECK(direct_suits({}, shape));
        check(shape);
    }
    CHECK_FALSE(direct_suits({}, LinearShape{.units = 33}));
}

TEST_CASE("direct linear: batches and columns divided for small and large GPUs give the reference's results") {
    for (const std::int64_t batch : {1, 8, 75})
        for (const auto& [height, width, channels] :
             {std::tuple{1, 1, 1}, {1, 1, 63}, {1, 1, 64}, {6, 5, 10}, {7, 9, 1}})
            for (const int multiprocessors : {1, 40}) {
                CAPTURE(batch);
                CAPTURE(channels);
                CAPTURE(multiprocessors);
                check(LinearShape{.batch = batch,
                                  .height = height,
                                  .width = width,
                                  .channels = channels,
                                  .units = 10,
                                  .activation = Activation::relu},
                      multiprocessors);
            }
}

TEST_CASE("direct linear: every activation gives the reference's output and gradients") {
    for (const Activation activation : finch::fused_activations()) {
        CAPTURE(static_cast<int>(activation));
        check(LinearShape{.batch = 40, .height = 3, .width = 2, .channels = 7, .units = 12, .activation = activation});
    }
}

TEST_CASE("direct linear: an input gradient is not written if it is not needed") {
    check(LinearShape{.batch = 3,
                      .height = 4,
                      .width = 5,
                      .channels = 3,
                      .units = 7,
                      .activation = Activation::tanh,
                      .needs_input_grad = false});
}

TEST_CASE("direct linear: the tutorial's layer gives the reference's output and gradients") {
    check(LinearShape{.batch = 8, .height = 28, .width = 28, .channels = 10, .units = 10}, 132);
}

TEST_CASE("direct linear: batches from 64 on, which a second kernel sums up, give the reference's results") {
    for (const std::int64_t batch : {64, 256, 1024}) {
        if (batch > 64 && !on_a_gpu()) {
            continue;  // would take minutes on the stand-ins
        }
        CAPTURE(batch);
        for (const int units : {10, 32}) {
            check(LinearShape{.batch = batch, .height = 14, .width = 14, .channels = 10, .units = units}, 132);
        }
        check(LinearShape{.batch = batch, .channels = 784, .units = 10, .activation = Activation::relu}, 132);
    }
}

TEST_CASE("direct linear: values of padding samples, which have a gradient of 0, do not change the gradients") {
    const LinearShape shape{.batch = 3, .channels = 4, .units = 2};
    Example<LinearShape> example(shape);
    example.grad_y[2] = example.grad_y[3] = 0;
    const Outputs before = example.run(132);
    for (std::size_t i = 4; i < 8; ++i) {
        example.x[i] *= 100;
    }

    CHECK(example.run(132).grad_parameters == before.grad_parameters);
}

TEST_CASE("direct convolution: the fewer multiprocessors a GPU has, the fewer pixels get more work per thread") {
    const auto kernel = [](std::int64_t batch, int multiprocessors) {
        Stream stream(std::make_shared<Shared>(DeviceFacts{.name = "a GPU", .multiprocessors = multiprocessors}));
        return make_direct(stream, ConvolutionShape{.batch = batch,
                                                    .height = 28,
                                                    .width = 28,
                                                    .channels_in = 10,
                                                    .channels_out = 10,
                                                    .kernel = 3,
                                                    .padding_before = 1,
                                                    .padding_after = 1})
            ->implementation();
    };

    CHECK(kernel(8, 132) == "finch:direct, 2 pixels x 5 channels");
    CHECK(kernel(8, 16) == "finch:direct, 4 pixels x 5 channels");
    CHECK(kernel(64, 132) == "finch:direct, 4 pixels x 5 channels");
    CHECK(kernel(64, 16) == "finch:direct, 4 pixels x 10 channels");
    CHECK(kernel(64, 264) == "finch:direct, 2 pixels x 5 channels");
}

TEST_CASE("operations: the order of threads changes no bit") {
    for (const Pooling kind : {Pooling::max, Pooling::average}) {
        const Example pooling(PoolingShape{
            .kind = kind, .batch = 2, .height = 5, .width = 6, .channels = 3, .kernel = 3, .stride = 1, .padding = 1});
        CHECK(same_in_every_order([&] { return pooling.run(4); }));
    }
    for (const std::int64_t batch : {8, 100}) {
        const Example linear(LinearShape{.batch = batch, .height = 4, .width = 4, .channels = 10, .units = 10});
        CHECK(same_in_every_order([&] { return linear.run(132); }));
    }
}
