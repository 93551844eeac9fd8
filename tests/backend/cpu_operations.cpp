#include "finch/base/error.hpp"

#include "backend/trial.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <new>
#include <string>

using namespace finch;
using namespace finch::test;

namespace {

bool has_avx2() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") != 0;
#else
    return false;
#endif
}

/// What `activation` makes of `x`.
std::vector<float> activated(Activation activation, const std::vector<float>& x) {
    const auto device = make_cpu_device(1);
    const auto operation = device->make(ActivationShape{static_cast<std::int64_t>(x.size()), activation});
    const Buffer device_x = on_device(*device, Tensor(x.begin(), x.end()));
    const Buffer device_y = device->allocate(x.size());
    forward(*device, *operation, device_x, device_y);
    return from_device(*device, device_y);
}

/// Numbers of either sign from 1e-30 to 80, where neither function leaves the range of a float.
std::vector<float> many_numbers() {
    std::vector<float> numbers{0};
    for (double number = 1e-30; number < 80; number *= 1.0003) {
        numbers.push_back(static_cast<float>(number));
        numbers.push_back(static_cast<float>(-number));
    }
    return numbers;
}

}  // namespace

TEST_CASE("sigmoid and tanh are those of float64 within a few units of the last place, wherever x is") {
    const std::vector<float> x = many_numbers();
    const std::vector<float> sigmoid = activated(Activation::sigmoid, x);
    const std::vector<float> tanh = activated(Activation::tanh, x);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double number = static_cast<double>(x[i]);
        const double logistic = 1 / (1 + std::exp(-number));
        worst = std::max(worst, std::abs(static_cast<double>(sigmoid[i]) - logistic) / logistic);
        const double tangent = number == 0 ? 1 : std::tanh(number);  // 0 must be met exactly
        worst = std::max(worst, std::abs(static_cast<double>(tanh[i]) - std::tanh(number)) / std::abs(tangent));
    }
    CHECK(worst < 4e-7);
}

TEST_CASE("an activation whose derivative needs its input is no part of another operation") {
    for (const Activation activation : all_activations()) {
        if (needs_its_input(activation)) {
            CHECK_THROWS_AS(static_cast<void>(fused(activation)), Error);
        } else {
            CHECK_NOTHROW(static_cast<void>(fused(activation)));
        }
    }
}

TEST_CASE("sigmoid and tanh of what is infinite, huge or no number") {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> x{infinity, 1e30F, 200, -200, -1e30F, -infinity, std::numeric_limits<float>::quiet_NaN()};
    const std::vector<float> sigmoid = activated(Activation::sigmoid, x);
    const std::vector<float> tanh = activated(Activation::tanh, x);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(sigmoid[i] == 1);
        CHECK(tanh[i] == 1);
        CHECK(sigmoid[3 + i] < 1e-37F);
        CHECK(sigmoid[3 + i] >= std::numeric_limits<float>::min());  // processors are slow with smaller ones
        CHECK(tanh[3 + i] == -1);
    }
    CHECK(std::isnan(sigmoid.back()));
    CHECK(std::isnan(tanh.back()));
}

TEST_CASE("convolution: gradients have the same bits each time, on two threads too") {
    check_same_gradients(*make_cpu_device(2));
}

TEST_CASE("batch_norm and dropout on two threads: the reference's output, and the bits of one thread's mask") {
    const BatchNormShape shape{.batch = 7, .pixels = 143, .channels = 12, .activation = Activation::relu};
    const DropoutShape mask{.batch = 7, .features = 1001, .rate = 0.3};
    RandomStream random(23, Purpose::test);
    const Tensor x = normal_tensor(random, input_size(shape));
    const Tensor parameters = normal_tensor(random, parameter_count(shape));
    const Tensor expected = reference::forward(shape, x, parameters);
    std::vector<std::vector<float>> masked;
    for (const int threads : {1, 2}) {
        const auto device = make_cpu_device(threads);
        const Buffer device_x = on_device(*device, x);
        const Buffer device_parameters = on_device(*device, parameters);
        const Buffer buffers = device->allocate(parameters.size());
        const Buffer y = device->allocate(x.size());
        TrialStep step(*device, shape.batch, shape.batch, {.random_key = {5, 6}});
        const float* const inputs[] = {device_x.data()};
        const auto norm = device->make(shape);
        norm->pack(device_parameters.data(), buffers.data());
        norm->forward(step.pass(), inputs, y.data());
        const std::vector<float> first = from_device(*device, y);
        CHECK(difference(first, expected) < tolerance);
        norm->forward(step.pass(), inputs, y.data());
        CHECK(from_device(*device, y) == first);

        device->make(mask)->forward(step.pass(), inputs, y.data());
        masked.push_back(from_device(*device, y));
    }
    CHECK(masked[0] == masked[1]);
}

TEST_CASE("an operation that oneDNN has no memory for is std::bad_alloc, as everywhere else") {
    const auto device = make_cpu_device(1);
    constexpr std::int64_t huge = 8'000'000;  // its weights: more bytes than an address has bits for

    CHECK_THROWS_AS(static_cast<void>(device->make(
                        LinearShape{.batch = 1, .height = 1, .width = 1, .channels = huge, .units = huge})),
                    std::bad_alloc);
}

TEST_CASE("the tutorial's layers give the reference's output and gradients, on one thread and on two") {
    for (const int threads : {1, 2}) {
        const auto device = make_cpu_device(threads);
        check(*device, ConvolutionShape{.batch = 8,
                                        .height = 28,
                                        .width = 28,
                                        .channels_in = 10,
                                        .channels_out = 10,
                                        .kernel = 3,
                                        .padding_before = 1,
                                        .padding_after = 1,
                                        .activation = Activation::relu});
        check(*device, LinearShape{8, 28, 28, 10, 10});
    }
}

TEST_CASE("convolutions of the tutorial's network run on neither gemm nor reference code" *
          doctest::skip(!has_avx2())) {
    const auto device = make_cpu_device(1);
    for (const std::int64_t batch : {8, 16})
        for (const std::int64_t channels : {1, 10})
            for (const Activation activation : {Activation::relu, Activation::sigmoid, Activation::tanh}) {
                const auto operation = device->make(ConvolutionShape{.batch = batch,
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

TEST_CASE("a strided 1 x 1 convolution's gradient is the reference's, on one thread and on two") {
    for (const int threads : {1, 2}) {
        const auto device = make_cpu_device(threads);
        for (const std::int64_t stride : {2, 3}) {
            for (const std::int64_t channels : {1, 2, 3, 6, 8, 20}) {
                ConvolutionShape shape;
                shape.batch = 6;
                shape.height = 28;
                shape.width = 26;
                shape.channels_in = channels;
                shape.channels_out = 16;
                shape.kernel = 1;
                shape.stride = stride;
                shape.needs_input_grad = true;
                check(*device, shape);
                const std::string implementation = device->make(shape)->implementation();
                CAPTURE(implementation);
                const std::string of_weights = implementation.substr(implementation.find(", ") + 2);
                CHECK_FALSE(of_weights.starts_with("jit_1x1"));  // it writes beyond its scratch
            }
        }
    }
}

TEST_CASE("what operations keep beside their buffers is counted") {
    CHECK(saved_floats(BatchNormShape{.batch = 8, .pixels = 49, .channels = 10}) >= 4 * 10 + 2 * 2 * 10);
    CHECK(saved_floats(ConvolutionShape{.batch = 8, .height = 7, .width = 7}) == 0);
    const PoolingShape pooling{.kind = Pooling::max, .batch = 2, .height = 6, .width = 6, .channels = 3};
    CHECK(saved_floats(pooling) == 2 * pooling.height_out() * pooling.width_out() * 3);
}
