// Tests every precision on shapes for the libraries' tensor cores and on narrow shapes. FINCH_TEST_PATH selects the
// kernels.
#include "backend/trial.hpp"
#include "cuda/on_a_gpu.hpp"
#include "support/float16.hpp"

#include <doctest/doctest.h>
#include <string>
#include <tuple>

using namespace finch;
using namespace finch::test;

namespace {

/// Returns the tolerance relative to a tensor's largest entry. Inputs are rounded to 10 or 7 bits of mantissa, and sums
/// are in float32. The errors of hundreds of products average out to about half of one rounding (5e-4, 4e-3). Outputs
/// of 16 bits may be rounded once more. float16 has tf32's mantissa.
double tolerance_of(Precision precision) {
    switch (precision) {
        case Precision::float32:
            break;
        case Precision::tf32:
        case Precision::float16:
            return 2e-3;
        case Precision::bfloat16:
            return 1.5e-2;
    }
    return tolerance;
}

/// Rounds the values to the precision.
Tensor rounded(Tensor values, Precision precision) {
    for (double& value : values) {
        const auto narrow = static_cast<float>(value);
        value = double{precision == Precision::bfloat16  ? to_bfloat16(narrow)
                       : precision == Precision::float16 ? to_float16(narrow)
                                                         : narrow};
    }
    return values;
}

struct Gradient {
    Tensor x, weights;
};

template <class Shape>
Gradient reference_of(const Shape& shape, const Trial<Shape>& trial, const Tensor& grad_y, Precision precision) {
    const auto seen = [&](const Tensor& values) { return rounded(values, precision); };
    const auto gradients =
        reference::backward(shape, seen(trial.x), seen(trial.parameters), trial.expected, seen(grad_y));
    const auto weights = static_cast<std::ptrdiff_t>(trial.parameters.size() - Trial<Shape>::biases_of(shape));
    return {gradients.x, Tensor(gradients.parameters.begin(), gradients.parameters.begin() + weights)};
}

template <class Shape>
void check_precision(Device& device, Shape shape) {
    for (const Precision precision : {Precision::float32, Precision::tf32, Precision::bfloat16, Precision::float16}) {
        shape.precision = precision;
        const double allowed = tolerance_of(precision);
        Trial<Shape> trial(device, shape, 1);
        CAPTURE(trial.operation->implementation());
        CAPTURE(static_cast<int>(precision));
        forward(trial.device, *trial.operation, trial.device_x, trial.device_y);
        CHECK(difference(from_device(device, trial.device_y), trial.expected) < allowed);

        const Tensor grad_y = normal_tensor(trial.random, trial.expected.size());
        Buffer device_grad_y = on_device(device, grad_y);
        const Buffer grad_x = on_device(device, Tensor(trial.x.size(), 77));
        const Buffer grad_parameters = on_device(device, Tensor(trial.parameters.size(), 77));
        backward(trial.device, *trial.operation, trial.device_x, trial.device_y, device_grad_y, grad_x,
                 grad_parameters);

        const std::vector<float> grads = from_device(device, grad_parameters);
        const Gradient exact = reference_of(shape, trial, grad_y, Precision::float32);
        const auto split = static_cast<std::ptrdiff_t>(exact.weights.size());
        const Tensor weights(grads.begin(), grads.begin() + split);
        CHECK(difference(from_device(device, grad_x), exact.x) < allowed);
        CHECK(difference(weights, exact.weights) < allowed);
        // The bias' gradient is a float32 sum in every precision.
        Tensor bias(static_cast<std::size_t>(std::ssize(grads) - split));
        for (std::size_t i = 0; i < grad_y.size(); ++i) {
            bias[i % bias.size()] += grad_y[i];
        }
        CHECK(difference(Tensor(grads.begin() + split, grads.end()), bias) < tolerance);
        if (precision == Precision::bfloat16 || precision == Precision::float16) {
            // The gradients are computed completely in float32, or from rounded inputs with float32 sums and outputs.
            // An output rounded to 16 bits would differ from both results by 1e-3 for bfloat16, or by 1.2e-4 for
            // float16.
            const Gradient narrow = reference_of(shape, trial, grad_y, precision);
            CHECK(std::min(difference(weights, exact.weights), difference(weights, narrow.weights)) <
                  (precision == Precision::bfloat16 ? 1e-4 : 4e-5));
        }
    }
}

}  // namespace

TEST_CASE("convolutions are right in every precision: wide, strided, narrow, odd channels, even kernels with `same`") {
    const auto device = make_device();
    const bool large = on_a_gpu();
    for (const auto& [in, out, kernel, stride] : {std::tuple{32, 32, 3, 1},
                                                  {64, 48, 3, 2},
                                                  {33, 48, 1, 1},
                                                  {32, 32, 4, 1},
                                                  {16, 24, 2, 1},
                                                  {3, 64, 5, 1},
                                                  {16, 16, 3, 1},
                                                  {10, 10, 3, 1}}) {
        CAPTURE(in);
        CAPTURE(out);
        CAPTURE(kernel);
        check_precision(*device, ConvolutionShape{.batch = large ? 16 : 2,
                                                  .height = large ? 14 : 6,
                                                  .width = large ? 14 : 7,
                                                  .channels_in = in,
                                                  .channels_out = out,
                                                  .kernel = kernel,
                                                  .stride = stride,
                                                  .padding_before = (kernel - 1) / 2,
                                                  .padding_after = kernel / 2});
    }
}

TEST_CASE("linear layers are right in every precision: wide layers, and the tutorial's layer") {
    const auto device = make_device();
    const bool large = on_a_gpu();
    check_precision(*device, LinearShape{.batch = 32, .channels = large ? 512 : 96, .units = 64});
    check_precision(*device, LinearShape{.batch = 24, .height = 4, .width = 4, .channels = 16, .units = 40});
    check_precision(*device, LinearShape{.batch = 8, .height = 7, .width = 7, .channels = 10, .units = 10});
}
