// Tests of bfloat16 products on the CPU. The reference computes in float64 with the rounded operands, so the tests see
// only the error of float32 sums. If the processor lacks bfloat16, or DNNL_MAX_CPU_ISA forbids it, the CPU device must
// not support bfloat16.
#include "backend/trial.hpp"

#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

using namespace finch;
using namespace finch::test;

namespace {

bool has_bfloat16() {
    static const bool has = make_cpu_device(1)->supports(Precision::bfloat16);
    return has;
}

Tensor rounded(Tensor values, std::size_t count) {
    std::transform(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count), values.begin(),
                   [](double value) { return double{to_bfloat16(static_cast<float>(value))}; });
    return values;
}
Tensor rounded(const Tensor& values) {
    return rounded(values, values.size());
}

/// Checks forward and both gradients of an operation that rounds the factors of its products: x, the weights, and the
/// gradient before the activation. The bias is not rounded.
template <class Shape>
void check_rounded(Device& device, Shape shape, double of_gradients = tolerance) {
    shape.precision = Precision::bfloat16;
    Trial<Shape> trial(device, shape, 1);
    CAPTURE(trial.operation->implementation());
    REQUIRE(trial.operation->implementation().starts_with("bfloat16: "));
    const std::size_t weights = trial.parameters.size() - Trial<Shape>::biases_of(shape);
    const Tensor x = rounded(trial.x);
    const Tensor parameters = rounded(trial.parameters, weights);
    forward(device, *trial.operation, trial.device_x, trial.device_y);
    const std::vector<float> outputs = from_device(device, trial.device_y);
    CHECK(difference(outputs, reference::forward(shape, x, parameters)) < tolerance);

    const Tensor y(outputs.begin(), outputs.end());
    const Tensor grad_y = normal_tensor(trial.random, y.size());
    Tensor before(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
        before[i] = grad_y[i] * reference::slope(shape.activation, y[i]);
    }
    Shape linear = shape;
    linear.activation = Activation::none;
    const reference::Gradients expected = reference::backward(linear, x, parameters, y, rounded(before));
    const Buffer grad_x = on_device(device, Tensor(x.size(), 77));
    const Buffer grad_parameters = on_device(device, Tensor(parameters.size(), 77));
    backward(device, *trial.operation, trial.device_x, trial.device_y, on_device(device, grad_y), grad_x,
             grad_parameters);

    if (shape.needs_input_grad) {
        CHECK(difference(from_device(device, grad_x), expected.x) < of_gradients);
    }
    const std::vector<float> actual = from_device(device, grad_parameters);
    const auto split = static_cast<std::ptrdiff_t>(weights);
    const auto part = [split](const auto& of, bool biases) {
        return biases ? Tensor(of.begin() + split, of.end()) : Tensor(of.begin(), of.begin() + split);
    };
    CHECK(difference(part(actual, false), part(expected.parameters, false)) < of_gradients);
    CHECK(difference(part(actual, true), part(expected.parameters, true)) < of_gradients);
}

ConvolutionShape wide_convolution() {
    return {.batch = 4,
            .height = 16,
            .width = 16,
            .channels_in = 32,
            .channels_out = 64,
            .kernel = 3,
            .padding_before = 1,
            .padding_after = 1,
            .activation = Activation::relu};
}

}  // namespace

TEST_CASE("bfloat16: convolutions of every kernel, stride and width are float32 sums of rounded products" *
          doctest::skip(!has_bfloat16())) {
    const auto device = make_cpu_device(1);
    for (const std::int64_t kernel : {1, 2, 3, 5})
        for (const std::int64_t stride : {1, 2})
            for (const auto& [in, out] :
                 {std::pair{1, 10}, {10, 10}, {3, 17}, {17, 1}, {16, 3}, {3, 32}, {32, 32}, {33, 70}}) {
                CAPTURE(kernel);
                CAPTURE(stride);
                CAPTURE(in);
                CAPTURE(out);
                check_rounded(*device, ConvolutionShape{.batch = 3,
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

TEST_CASE("bfloat16: convolutions with groups and dilation are float32 sums of rounded products" *
          doctest::skip(!has_bfloat16())) {
    const auto device = make_cpu_device(1);
    for (const auto& [in, out, groups] : {std::tuple{6, 4, 2}, {12, 18, 3}, {32, 32, 2}, {10, 12, 1}, {64, 64, 16}})
        for (const std::int64_t dilation : {1, 2}) {
            CAPTURE(in);
            CAPTURE(groups);
            CAPTURE(dilation);
            check_rounded(*device, ConvolutionShape{.batch = 3,
                                                    .height = 8,
                                                    .width = 11,
                                                    .channels_in = in,
                                                    .channels_out = out,
                                                    .kernel = 3,
                                                    .padding_before = dilation,
                                                    .padding_after = dilation,
                                                    .dilation = dilation,
                                                    .groups = groups});
        }
}

TEST_CASE("bfloat16: linear layers over rows and images are float32 sums of rounded products" *
          doctest::skip(!has_bfloat16())) {
    const auto device = make_cpu_device(1);
    for (const std::int64_t units : {32, 33, 100})
        for (const std::int64_t batch : {1, 3, 16}) {
            CAPTURE(units);
            CAPTURE(batch);
            check_rounded(*device, LinearShape{.batch = batch, .channels = 65, .units = units});
            check_rounded(*device, LinearShape{.batch = batch,
                                               .height = 5,
                                               .width = 7,
                                               .channels = 17,
                                               .units = units,
                                               .activation = Activation::relu});
        }
}

// The tolerance is larger here. Slopes are computed in float32, so a gradient halfway between two bfloat16 numbers may
// round differently.
TEST_CASE("bfloat16: sigmoid and tanh compute their derivative in float32, before the gradient is rounded" *
          doctest::skip(!has_bfloat16())) {
    const auto device = make_cpu_device(1);
    for (const Activation activation : {Activation::sigmoid, Activation::tanh}) {
        ConvolutionShape shape = wide_convolution();
        shape.activation = activation;
        check_rounded(*device, shape, 1e-4);
        check_rounded(*device, LinearShape{.batch = 8, .channels = 50, .units = 40, .activation = activation}, 1e-4);
    }
}

TEST_CASE("bfloat16: the parameters' gradients are right if no input gradient is requested" *
          doctest::skip(!has_bfloat16())) {
    const auto device = make_cpu_device(1);
    ConvolutionShape shape = wide_convolution();
    shape.needs_input_grad = false;

    check_rounded(*device, shape);
    check_rounded(*device, LinearShape{.batch = 3, .channels = 50, .units = 40, .needs_input_grad = false});
}

TEST_CASE("bfloat16: on two threads the sums are right, and repeated runs give the same bits" *
          doctest::skip(!has_bfloat16())) {
    const auto device = make_cpu_device(2);
    const ConvolutionShape shape = wide_convolution();
    check_rounded(*device, shape);
    ConvolutionShape asked = shape;
    asked.precision = Precision::bfloat16;
    Trial<ConvolutionShape> trial(*device, asked, 1);
    const Tensor grad_y = normal_tensor(trial.random, trial.expected.size());
    const auto results = [&] {
        forward(*device, *trial.operation, trial.device_x, trial.device_y);
        const Buffer grad_x = device->allocate(trial.x.size());
        const Buffer grad_parameters = device->allocate(trial.parameters.size());
        backward(*device, *trial.operation, trial.device_x, trial.device_y, on_device(*device, grad_y), grad_x,
                 grad_parameters);
        return std::tuple{from_device(*device, trial.device_y), from_device(*device, grad_x),
                          from_device(*device, grad_parameters)};
    };

    const auto first = results();

    for (int again = 0; again < 20; ++again) {
        CHECK(results() == first);
    }
}

TEST_CASE("bfloat16: operations share their scratch memory; it grows for the largest operation" *
          doctest::skip(!has_bfloat16())) {
    const auto device = make_cpu_device(1);
    ConvolutionShape small = wide_convolution();
    small.precision = Precision::bfloat16;
    small.batch = 1;
    ConvolutionShape large = small;
    large.batch = 16;
    Trial<ConvolutionShape> first(*device, small, 1);
    forward(*device, *first.operation, first.device_x, first.device_y);
    const std::vector<float> before = from_device(*device, first.device_y);

    const auto grown = device->make(large);

    forward(*device, *first.operation, first.device_x, first.device_y);
    CHECK(from_device(*device, first.device_y) == before);
    CHECK(device->scratch_bytes(small) == 2 * 16 * 16 * (32 + 64));
    CHECK(device->scratch_bytes(large) == 16 * device->scratch_bytes(small));
    ConvolutionShape pointwise = wide_convolution();
    pointwise.kernel = 1;
    pointwise.padding_before = pointwise.padding_after = 0;
    CHECK(device->scratch_bytes(pointwise) == 0);
}

TEST_CASE("bfloat16: NaN or infinity in one sample's x reaches that sample's outputs only" *
          doctest::skip(!has_bfloat16())) {
    const auto device = make_cpu_device(1);
    const LinearShape shape{.batch = 2, .channels = 40, .units = 32, .precision = Precision::bfloat16};
    Trial<LinearShape> trial(*device, shape, 1);
    for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::bit_cast<float>(0x7f800001U),
                            std::numeric_limits<float>::infinity(), std::numeric_limits<float>::max()}) {
        trial.device_x.span()[3] = odd;

        forward(*device, *trial.operation, trial.device_x, trial.device_y);

        const std::vector<float> y = from_device(*device, trial.device_y);
        CAPTURE(odd);
        CHECK(std::none_of(y.begin(), y.begin() + 32, [](float value) { return std::isfinite(value); }));
        CHECK(std::all_of(y.begin() + 32, y.end(), [](float value) { return std::isfinite(value); }));
    }
}

TEST_CASE("bfloat16: shapes that bfloat16 does not support or does not speed up are computed in float32") {
    const auto device = make_cpu_device(1);
    ConvolutionShape depthwise = wide_convolution();
    depthwise.channels_in = depthwise.channels_out = depthwise.groups = 16;
    ConvolutionShape of_slow_kernels = wide_convolution();
    of_slow_kernels.stride = of_slow_kernels.dilation = 2;
    LinearShape narrow{.batch = 8, .height = 4, .width = 4, .channels = 32, .units = 10};
    depthwise.precision = of_slow_kernels.precision = narrow.precision = Precision::bfloat16;

    check(*device, depthwise);
    check(*device, of_slow_kernels);
    check(*device, narrow);
    CHECK(device->scratch_bytes(narrow) == 0);
    if (!device->supports(Precision::bfloat16)) {
        ConvolutionShape wide = wide_convolution();
        const std::int64_t in_float32 = device->scratch_bytes(wide);
        wide.precision = Precision::bfloat16;
        check(*device, wide);
        CHECK(device->scratch_bytes(wide) == in_float32);
    }
}

TEST_CASE("bfloat16: the layers of common networks use neither gemm nor reference kernels" *
          doctest::skip(!has_bfloat16())) {
    const auto device = make_cpu_device(1);
    for (const auto& [side, in, out] :
         {std::tuple{28, 1, 10}, {28, 10, 10}, {32, 3, 32}, {32, 32, 32}, {16, 32, 64}, {8, 64, 128}, {8, 128, 128}}) {
        const auto operation = device->make(ConvolutionShape{.batch = 16,
                                                             .height = side,
                                                             .width = side,
                                                             .channels_in = in,
                                                             .channels_out = out,
                                                             .kernel = 3,
                                                             .padding_before = 1,
                                                             .padding_after = 1,
                                                             .activation = Activation::relu,
                                                             .needs_input_grad = in > 3,
                                                             .precision = Precision::bfloat16});
        const std::string implementation = operation->implementation();
        CAPTURE(implementation);
        CHECK(implementation.starts_with("bfloat16: "));
        CHECK(implementation.find("gemm") == std::string::npos);
        CHECK(implementation.find("ref") == std::string::npos);
    }
}

TEST_CASE("the CPU device always supports float32, never tf32, and not bfloat16 if DNNL_MAX_CPU_ISA is set") {
    const auto device = make_cpu_device(1);

    CHECK(device->supports(Precision::float32));
    CHECK(!device->supports(Precision::tf32));
    if (!has_bfloat16()) {
        MESSAGE(
            "the rest was skipped: this processor has neither AVX512-BF16 nor AMX, or DNNL_MAX_CPU_ISA forbids them");
    }
    if (const char* most = std::getenv("DNNL_MAX_CPU_ISA"); most != nullptr) {
        CHECK(!device->supports(Precision::bfloat16));
    }
}
