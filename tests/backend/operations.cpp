#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "finch/backend/device.hpp"

#include "backend/samples.hpp"

#include <doctest/doctest.h>

namespace finch::testing {
namespace {

constexpr double tolerance = 1e-5;  // of each tensor's largest entry

std::unique_ptr<backend::Operation> make(backend::Device& device, const backend::ConvolutionShape& shape) {
    return device.convolution(shape);
}
std::unique_ptr<backend::Operation> make(backend::Device& device, const backend::LinearShape& shape) {
    return device.linear(shape);
}
std::unique_ptr<backend::Operation> make(backend::Device& device, const backend::PoolingShape& shape) {
    return device.pooling(shape);
}
std::unique_ptr<backend::Operation> make(backend::Device& device, const backend::ActivationShape& shape) {
    return device.activation(shape);
}

backend::Buffer upload(backend::Device& device, const Values& values) {
    backend::Buffer buffer = device.allocate(values.size());
    device.upload(floats(values), buffer.data());
    return buffer;
}

std::vector<float> download(backend::Device& device, const backend::Buffer& buffer) {
    std::vector<float> values(buffer.size());
    device.download(buffer.data(), values);
    return values;
}

/// Weights as a network has them, ±1/√fan_in: sums of larger ones would cancel, and float32 itself would miss 1e-5.
template <class Shape>
Values usual_parameters(const Shape& shape, std::int64_t units) {
    Values parameters = normals(sizes(shape).parameters, 2);
    const double fan_in = static_cast<double>(parameters.size()) / static_cast<double>(units);
    for (double& value : parameters) {
        value = static_cast<double>(static_cast<float>(value / std::sqrt(fan_in)));
    }
    return parameters;
}
Values usual_parameters(const backend::ConvolutionShape& shape) {
    return usual_parameters(shape, shape.channels_out);
}
Values usual_parameters(const backend::LinearShape& shape) {
    return usual_parameters(shape, shape.units);
}
Values usual_parameters(const backend::PoolingShape&) {
    return {};
}
Values usual_parameters(const backend::ActivationShape&) {
    return {};
}

/// One operation with its data on both sides.
template <class Shape>
void compare(backend::Device& device, const Shape& shape, bool needs_input_grad = true) {
    const Sizes n = sizes(shape);
    const Values x = normals(n.x, 1);
    const Values parameters = usual_parameters(shape);
    const Values weights = normals(n.y, 3);
    const auto operation = make(device, shape);
    const backend::Buffer on_x = upload(device, x);
    const backend::Buffer on_parameters = upload(device, parameters);
    const backend::Buffer grad_y = upload(device, weights);
    const backend::Buffer y = device.allocate(n.y);
    const backend::Buffer grad_x = upload(device, Values(n.x, 7.0));  // must be overwritten
    const backend::Buffer grad_parameters = upload(device, Values(n.parameters, 7.0));

    operation->pack(on_parameters.data());
    operation->forward(on_x.data(), y.data());
    operation->backward(on_x.data(), y.data(), grad_y.data(), grad_x.data(), grad_parameters.data());
    const Grads expected = backward(shape, x, parameters, weights);

    CAPTURE(operation->implementation());
    CHECK(worst(download(device, y), forward(shape, x, parameters)) < tolerance);
    CHECK(worst(download(device, grad_parameters), expected.parameters) < tolerance);
    if (needs_input_grad) {
        CHECK(worst(download(device, grad_x), expected.x) < tolerance);
    }
}

}  // namespace

TEST_CASE("convolutions agree with the reference: odd channels, kernels, strides, paddings and batches") {
    const auto device = backend::make_cpu_device(1);
    for (const backend::Activation activation : activations) {
        for (const std::int64_t channels_in : {1, 3, 10, 17}) {
            for (const std::int64_t channels_out : {1, 10, 17}) {
                CAPTURE(channels_in);
                CAPTURE(channels_out);
                compare(*device, backend::ConvolutionShape{3, 9, 7, channels_in, channels_out, 3, 1, 1, 1, activation});
                compare(*device,
                        backend::ConvolutionShape{1, 8, 11, channels_in, channels_out, 5, 2, 2, 2, activation});
                compare(*device, backend::ConvolutionShape{8, 6, 5, channels_in, channels_out, 2, 1, 0, 1, activation});
                compare(*device, backend::ConvolutionShape{2, 7, 5, channels_in, channels_out, 1, 2, 0, 0, activation});
            }
        }
    }
}

TEST_CASE("a convolution that needs no gradient of its input gives those of its parameters") {
    const auto device = backend::make_cpu_device(1);

    compare(*device, backend::ConvolutionShape{8, 28, 28, 1, 10, 3, 1, 1, 1, backend::Activation::relu, false}, false);
}

TEST_CASE("the tutorial's layers agree with the reference") {
    const auto device = backend::make_cpu_device(2);

    compare(*device, backend::ConvolutionShape{8, 28, 28, 10, 10, 3, 1, 1, 1, backend::Activation::relu});
    compare(*device, backend::LinearShape{8, 28, 28, 10, 10});
}

TEST_CASE("linear layers agree with the reference, over images and over features") {
    const auto device = backend::make_cpu_device(1);
    for (const backend::Activation activation : activations) {
        for (const std::int64_t batch : {1, 3, 8}) {
            compare(*device, backend::LinearShape{batch, 5, 3, 7, 10, activation});
            compare(*device, backend::LinearShape{batch, 1, 1, 33, 5, activation});
            compare(*device, backend::LinearShape{batch, 1, 4, 1, 1, activation});
        }
    }
}

TEST_CASE("poolings and activations agree with the reference") {
    const auto device = backend::make_cpu_device(1);
    for (const backend::Pooling kind : {backend::Pooling::max, backend::Pooling::average}) {
        for (const std::int64_t channels : {1, 3, 10, 17}) {
            compare(*device, backend::PoolingShape{kind, 3, 8, 6, channels, 2, 2, 0});
            compare(*device, backend::PoolingShape{kind, 1, 9, 7, channels, 3, 2, 1});
            compare(*device,
                    backend::PoolingShape{kind, 2, 7, 5, channels, 2, 2, 0});  // a row and a column are left over
        }
    }
    for (const backend::Activation activation : activations) {
        compare(*device, backend::ActivationShape{101, activation});
    }
}

TEST_CASE("after a change of the parameters pack() takes the new ones") {
    const auto device = backend::make_cpu_device(1);
    const backend::ConvolutionShape shape{2, 6, 6, 3, 10, 3, 1, 1, 1};
    const Sizes n = sizes(shape);
    const Values x = normals(n.x, 1);
    const auto operation = device->convolution(shape);
    const backend::Buffer on_x = upload(*device, x);
    const backend::Buffer y = device->allocate(n.y);
    backend::Buffer parameters = upload(*device, normals(n.parameters, 2));
    operation->pack(parameters.data());
    const Values changed = normals(n.parameters, 9);

    device->upload(floats(changed), parameters.data());
    operation->pack(parameters.data());
    operation->forward(on_x.data(), y.data());

    CHECK(worst(download(*device, y), forward(shape, x, changed)) < tolerance);
}

TEST_CASE("two operations of one shape keep their parameters apart, and one's result does not depend on the other") {
    const auto device = backend::make_cpu_device(1);
    const backend::ConvolutionShape shape{2, 6, 6, 3, 10, 3, 1, 1, 1};
    const Sizes n = sizes(shape);
    const Values x = normals(n.x, 1);
    const auto first = device->convolution(shape);
    const auto second = device->convolution(shape);
    const backend::Buffer on_x = upload(*device, x);
    const backend::Buffer y = device->allocate(n.y);
    const Values one = normals(n.parameters, 2);
    const Values other = normals(n.parameters, 3);
    const backend::Buffer on_one = upload(*device, one);
    const backend::Buffer on_other = upload(*device, other);

    first->pack(on_one.data());
    second->pack(on_other.data());
    first->forward(on_x.data(), y.data());

    CHECK(worst(download(*device, y), forward(shape, x, one)) < tolerance);
}

}  // namespace finch::testing
