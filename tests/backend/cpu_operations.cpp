#include "finch/base/error.hpp"

#include "backend/trial.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <new>
#include <string>
#include <vector>

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

/// Returns the activation of `x` as the CPU device computes it.
std::vector<float> activated(Activation activation, const std::vector<float>& x) {
    const auto device = make_cpu_device(1);
    const auto operation = device->make(ActivationShape{static_cast<std::int64_t>(x.size()), activation});
    const Buffer device_x = on_device(*device, Tensor(x.begin(), x.end()));
    const Buffer device_y = device->allocate(x.size());
    forward(*device, *operation, device_x, device_y);
    return from_device(*device, device_y);
}

/// Returns 0 and numbers of both signs from 1e-30 to 80. In this range sigmoid and tanh stay in the range of a float.
std::vector<float> many_numbers() {
    std::vector<float> numbers{0};
    for (double number = 1e-30; number < 80; number *= 1.0003) {
        numbers.push_back(static_cast<float>(number));
        numbers.push_back(static_cast<float>(-number));
    }
    return numbers;
}

}  // namespace

TEST_CASE("maximum pooling: the first of equal pixels gets the gradient, and NaN is the maximum, as in PyTorch") {
    const auto device = make_cpu_device(1);
    const auto pooling = device->make(PoolingShape{.batch = 1, .height = 2, .width = 4, .channels = 1});
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const Buffer x = on_device(*device, std::vector{1.0F, 3.0F, 2.0F, 5.0F, 3.0F, 3.0F, nan, 4.0F});
    const Buffer y = device->allocate(2);
    const Buffer grad_y = on_device(*device, std::vector{7.0F, 9.0F});
    const Buffer grad_x = on_device(*device, std::vector<float>(8, 77.0F));

    forward(*device, *pooling, x, y);
    backward(*device, *pooling, x, y, grad_y, grad_x, Buffer());

    CHECK(y.span()[0] == 3.0F);
    CHECK(std::isnan(y.span()[1]));
    CHECK(from_device(*device, grad_x) == std::vector{0.0F, 7.0F, 0.0F, 0.0F, 0.0F, 0.0F, 9.0F, 0.0F});
}

TEST_CASE("sigmoid and tanh differ from float64 by a few units in the last place at most, for small and large x") {
    const std::vector<float> x = many_numbers();
    const std::vector<float> sigmoid = activated(Activation::sigmoid, x);
    const std::vector<float> tanh = activated(Activation::tanh, x);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double number = static_cast<double>(x[i]);
        const double logistic = 1 / (1 + std::exp(-number));
        worst = std::max(worst, std::abs(static_cast<double>(sigmoid[i]) - logistic) / logistic);
        const double tangent = number == 0 ? 1 : std::tanh(number);  // tanh(0) must be exactly 0
        worst = std::max(worst, std::abs(static_cast<double>(tanh[i]) - std::tanh(number)) / std::abs(tangent));
    }
    CHECK(worst < 4e-7);
}

TEST_CASE("an activation with a derivative that needs its input cannot be fused into another operation") {
    for (const Activation activation : all_activations()) {
        if (needs_its_input(activation)) {
            CHECK_THROWS_AS(static_cast<void>(fused(activation)), Error);
        } else {
            CHECK_NOTHROW(static_cast<void>(fused(activation)));
        }
    }
}

TEST_CASE("sigmoid and tanh return their limits for infinite and huge numbers, and NaN for NaN") {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> x{infinity, 1e30F, 200, -200, -1e30F, -infinity, std::numeric_limits<float>::quiet_NaN()};
    const std::vector<float> sigmoid = activated(Activation::sigmoid, x);
    const std::vector<float> tanh = activated(Activation::tanh, x);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(sigmoid[i] == 1);
        CHECK(tanh[i] == 1);
        CHECK(sigmoid[3 + i] < 1e-37F);
        CHECK(sigmoid[3 + i] >= std::numeric_limits<float>::min());  // subnormal numbers slow processors down
        CHECK(tanh[3 + i] == -1);
    }
    CHECK(std::isnan(sigmoid.back()));
    CHECK(std::isnan(tanh.back()));
}

TEST_CASE("convolution: repeated runs on two threads give gradients with the same bits") {
    check_same_gradients(*make_cpu_device(2));
}

TEST_CASE("batch_norm matches the reference on one and two threads; the dropout mask is the same on both") {
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

TEST_CASE("an operation for which oneDNN gets no memory throws std::bad_alloc") {
    const auto device = make_cpu_device(1);
    constexpr std::int64_t huge = 8'000'000;  // more bytes of weights than a pointer can address

    CHECK_THROWS_AS(static_cast<void>(device->make(
                        LinearShape{.batch = 1, .height = 1, .width = 1, .channels = huge, .units = huge})),
                    std::bad_alloc);
}

TEST_CASE("the layers of the tutorial's network match the reference's output and gradients on one and two threads") {
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

TEST_CASE("the convolutions of the tutorial's network use neither gemm nor reference kernels" *
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

TEST_CASE("gradients of a strided 1 x 1 convolution match the reference on one and two threads") {
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
                CHECK_FALSE(of_weights.starts_with("jit_1x1"));  // oneDNN's jit_1x1 writes beyond its scratch memory
            }
        }
    }
}

TEST_CASE("saved_floats counts the memory that operations keep in addition to their input and output") {
    CHECK(saved_floats(BatchNormShape{.batch = 8, .pixels = 49, .channels = 10}) >= 4 * 10 + 2 * 2 * 10);
    CHECK(saved_floats(ConvolutionShape{.batch = 8, .height = 7, .width = 7}) == 0);
    const PoolingShape pooling{.kind = Pooling::max, .batch = 2, .height = 6, .width = 6, .channels = 3};
    CHECK(saved_floats(pooling) == 2 * pooling.height_out() * pooling.width_out() * 3);
}
