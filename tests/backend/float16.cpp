// Tests of to_float16() (IEEE 754, round to nearest even) and of Float16Device, a test device that computes in float16.
// The device is compared with a float64 reference of the rounded operands.
#include "backend/trial.hpp"
#include "support/float16_device.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <tuple>
#include <type_traits>

using namespace finch;
using namespace finch::test;

namespace {

/// Returns the value of a float16 with these bits.
double number_of(std::uint32_t bits) {
    const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
    const auto exponent = static_cast<int>(bits >> 10U & 31U);
    const auto mantissa = static_cast<double>(bits & 1023U);
    if (exponent == 31) {
        return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
    }
    return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

Tensor rounded_to_half(Tensor values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = double{to_float16(static_cast<float>(values[i]))};
    }
    return values;
}

template <class Shape>
void check_rounded(Shape shape, double scale) {
    Float16Device device;
    shape.precision = Precision::float16;
    Trial<Shape> trial(device, shape, 1);
    REQUIRE(trial.operation->implementation().starts_with("float16: "));
    const std::size_t weights = trial.parameters.size() - Trial<Shape>::biases_of(shape);
    // A convolution rounds its sums as well. A sum in another order may be rounded to the neighbour.
    constexpr bool is_convolution = std::is_same_v<Shape, ConvolutionShape>;
    constexpr double of_sums = is_convolution ? 1e-3 : tolerance;
    const Tensor x = rounded_to_half(trial.x, trial.x.size());
    const Tensor parameters = rounded_to_half(trial.parameters, weights);
    forward(device, *trial.operation, trial.device_x, trial.device_y);
    const std::vector<float> outputs = from_device(device, trial.device_y);
    CHECK(difference(outputs, reference::forward(shape, x, parameters)) < of_sums);
    CHECK((difference(outputs, reference::forward(shape, x, parameters)) > tolerance) == is_convolution);

    const Tensor y(outputs.begin(), outputs.end());
    Tensor grad_y = normal_tensor(trial.random, y.size(), scale);
    const Buffer on = on_device(device, grad_y);
    for (std::size_t i = 0; i < y.size(); ++i) {
        grad_y[i] =
            double{static_cast<float>(grad_y[i]) * static_cast<float>(reference::slope(shape.activation, y[i]))};
    }
    shape.activation = Activation::none;
    const reference::Gradients expected =
        reference::backward(shape, x, parameters, y, rounded_to_half(grad_y, grad_y.size()));
    const Tensor expected_parameters =
        is_convolution ? reference::backward(shape, trial.x, parameters, y, grad_y).parameters : expected.parameters;
    const Buffer grad_x = on_device(device, Tensor(x.size(), 77));
    const Buffer grad_parameters = on_device(device, Tensor(parameters.size(), 77));
    backward(device, *trial.operation, trial.device_x, trial.device_y, on, grad_x, grad_parameters);

    const std::vector<float> actual = from_device(device, grad_parameters);
    const auto split = static_cast<std::ptrdiff_t>(weights);
    CHECK(difference(from_device(device, grad_x), expected.x) < (scale < 1e-3 ? 0.1 : of_sums));
    CHECK(difference(Tensor(actual.begin(), actual.begin() + split),
                     Tensor(expected_parameters.begin(), expected_parameters.begin() + split)) < tolerance);
    Tensor bias(trial.parameters.size() - weights);
    for (std::size_t i = 0; i < grad_y.size(); ++i) {
        bias[i % bias.size()] += grad_y[i];
    }
    CHECK(difference(Tensor(actual.begin() + split, actual.end()), bias) < tolerance);
}

}  // namespace

TEST_CASE("to_float16: keeps float16 numbers, and rounds other numbers to the nearest float16, ties to even") {
    for (std::uint32_t bits = 0; bits < 0x7c00U; ++bits) {
        const auto number = static_cast<float>(number_of(bits));
        const auto next = static_cast<float>(bits == 0x7bffU ? 65536 : number_of(bits + 1));
        const float middle = (number + next) / 2;
        const float above = bits == 0x7bffU ? std::numeric_limits<float>::infinity() : next;
        CAPTURE(bits);
        CHECK(to_float16(number) == number);
        CHECK(to_float16(std::nextafter(middle, 0.0F)) == number);
        CHECK(to_float16(middle) == (bits % 2 == 0 ? number : above));
        CHECK(to_float16(-std::nextafter(middle, next)) == -above);
    }
    CHECK(std::signbit(to_float16(-0.0F)));
    CHECK(to_float16(-3e38F) == -std::numeric_limits<float>::infinity());
    CHECK(std::isnan(to_float16(std::nanf(""))));
}

TEST_CASE("Float16Device: operations are float32 sums of products of rounded factors, for small gradients too") {
    for (const double scale : {1.0, 1e-3, 1e-6}) {
        CAPTURE(scale);
        check_rounded(ConvolutionShape{.batch = 3,
                                       .height = 9,
                                       .width = 12,
                                       .channels_in = 5,
                                       .channels_out = 7,
                                       .kernel = 3,
                                       .padding_before = 1,
                                       .padding_after = 1,
                                       .activation = Activation::relu},
                      scale);
        check_rounded(
            LinearShape{.batch = 4, .height = 3, .width = 5, .channels = 6, .units = 9, .activation = Activation::tanh},
            scale);
    }
}

TEST_CASE("the CPU device does not support float16") {
    const auto device = make_cpu_device(1);

    CHECK(!device->supports(Precision::float16));
}
