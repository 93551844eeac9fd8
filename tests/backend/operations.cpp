#include "backend/trial.hpp"

#include <doctest/doctest.h>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace finch;
using namespace finch::test;

TEST_CASE("convolution: kernels, strides and channels give the reference's output and gradients") {
    const auto device = make_device();
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
    const auto device = make_device();
    for (const Activation activation : fused_activations())
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

TEST_CASE("convolution: the parameters' gradients are right if no input gradient is requested") {
    const auto device = make_device();

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
    const auto device = make_device();
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
    const auto device = make_device();
    for (const Activation activation : fused_activations())
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

TEST_CASE("linear: the parameters' gradients are right if no input gradient is requested") {
    const auto device = make_device();

    check(*device, LinearShape{.batch = 3,
                               .height = 4,
                               .width = 5,
                               .channels = 3,
                               .units = 7,
                               .activation = Activation::tanh,
                               .needs_input_grad = false});
}

TEST_CASE("convolution: dilation and groups, depthwise too, give the reference's output and gradients") {
    const auto device = make_device();
    for (const auto& [in, out, groups] :
         {std::tuple{6, 4, 1}, {6, 4, 2}, {12, 18, 3}, {5, 5, 5}, {16, 16, 16}, {4, 12, 4}, {32, 32, 2}})
        for (const std::int64_t kernel : {1, 2, 3})
            for (const std::int64_t dilation : {1, 2, 3})
                for (const std::int64_t stride : {1, 2}) {
                    CAPTURE(in);
                    CAPTURE(groups);
                    CAPTURE(kernel);
                    CAPTURE(dilation);
                    CAPTURE(stride);
                    const std::int64_t beyond = dilation * (kernel - 1);
                    check(*device, ConvolutionShape{.batch = 3,
                                                    .height = 8,
                                                    .width = 11,
                                                    .channels_in = in,
                                                    .channels_out = out,
                                                    .kernel = kernel,
                                                    .stride = stride,
                                                    .padding_before = beyond / 2,
                                                    .padding_after = beyond - beyond / 2,
                                                    .dilation = dilation,
                                                    .groups = groups,
                                                    .activation = Activation::relu});
                }
}

TEST_CASE("mean: pixels and channels give the reference's output and gradient") {
    const auto device = make_device();
    for (const std::int64_t pixels : {1, 7, 49})
        for (const std::int64_t channels : {1, 3, 33}) {
            CAPTURE(pixels);
            CAPTURE(channels);
            check(*device, MeanShape{.batch = 5, .pixels = pixels, .channels = channels});
        }
}

TEST_CASE("layer normalisation: pixels and channels give the reference's output and gradients") {
    const auto device = make_device();
    for (const std::int64_t pixels : {1, 7, 100})
        for (const std::int64_t channels : {2, 3, 33, 65}) {
            CAPTURE(pixels);
            CAPTURE(channels);
            check(*device, LayerNormShape{.batch = 5, .pixels = pixels, .channels = channels});
        }
}

TEST_CASE("concatenation: each output row joins a row of both inputs; backward splits the gradient again") {
    const auto device = make_device();
    const ConcatenateShape shape{.rows = 6, .first = 3, .second = 5};
    const auto operation = device->make(shape);
    Tensor a(18), b(30);
    std::iota(a.begin(), a.end(), 0);
    std::iota(b.begin(), b.end(), 100);
    const Buffer device_a = on_device(*device, a);
    const Buffer device_b = on_device(*device, b);
    const Buffer y = device->allocate(48);
    const Buffer grad_a = device->allocate(18);
    const Buffer grad_b = device->allocate(30);
    TrialStep step(*device);
    const float* const inputs[] = {device_a.data(), device_b.data()};
    operation->forward(step.pass(), inputs, y.data());

    std::vector<float> expected;
    for (std::int64_t row = 0; row < 6; ++row) {
        expected.insert(expected.end(), a.begin() + 3 * row, a.begin() + 3 * row + 3);
        expected.insert(expected.end(), b.begin() + 5 * row, b.begin() + 5 * row + 5);
    }
    CHECK(from_device(*device, y) == expected);

    float* const grads[] = {grad_a.data(), grad_b.data()};
    operation->backward(step.pass(), inputs, y.data(), y.data(), grads, nullptr);
    CHECK(from_device(*device, grad_a) == std::vector<float>(a.begin(), a.end()));
    CHECK(from_device(*device, grad_b) == std::vector<float>(b.begin(), b.end()));

    float* const only_second[] = {nullptr, grad_b.data()};
    operation->backward(step.pass(), inputs, y.data(), y.data(), only_second, nullptr);
    CHECK(from_device(*device, grad_b) == std::vector<float>(b.begin(), b.end()));
}

TEST_CASE("activation: every kind gives the reference's output and gradient") {
    const auto device = make_device();
    for (const Activation activation : all_activations())
        for (const std::int64_t count : {1, 17, 1000}) {
            CAPTURE(static_cast<int>(activation));
            check(*device, ActivationShape{.count = count, .activation = activation});
        }
}

TEST_CASE("operations of one shape have separate parameters and separate data saved from forward for backward") {
    const auto device = make_device();
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
    const auto device = make_device();
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
    trial.operation->pack(trial.device_parameters.data(), nullptr);

    trial.check_forward();
    trial.check_backward();
}

TEST_CASE("convolution: many outputs, and more channels than one chunk holds, give the reference's gradients") {
    const auto device = make_device();
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

TEST_CASE("convolution: repeated runs give gradients with the same bits") {
    check_same_gradients(*make_device());
}
