// Tests of activations that are stored as bfloat16. The reference for an operation is the same operation with float32
// tensors, which other tests compare with float64, on inputs that bfloat16 represents exactly.
#include "backend/trial.hpp"
#include "cuda/device_array.hpp"
#include "cuda/on_a_gpu.hpp"
#include "support/rehearsal/control.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>
#include <string>
#include <tuple>
#include <vector>

using namespace finch;
using namespace finch::test;

namespace {

constexpr TensorType narrow = TensorType::bfloat16;
constexpr TensorType wide = TensorType::float32;

Tensor rounded(Tensor values) {
    for (double& value : values) {
        value = double{to_bfloat16(static_cast<float>(value))};
    }
    return values;
}

/// Returns a buffer with `values` as numbers of `type`, and two numbers more.
Buffer stored(Device& device, const Tensor& values, TensorType type) {
    std::vector<float> floats(values.begin(), values.end());
    floats.resize(values.size() + 2, 77);
    if (type == narrow) {
        std::vector<float> pairs((floats.size() + 1) / 2);
        for (std::size_t i = 0; i < floats.size(); ++i) {
            auto bits = std::bit_cast<std::uint32_t>(pairs[i / 2]);
            bits |= std::bit_cast<std::uint32_t>(floats[i]) >> 16 << (i % 2 == 0 ? 0 : 16);
            pairs[i / 2] = std::bit_cast<float>(bits);
        }
        floats = pairs;
    }
    return on_device(device, floats);
}

/// Returns `size` numbers of a buffer of stored(). Checks that the numbers after them are unchanged.
std::vector<float> read(Device& device, const Buffer& buffer, TensorType type, std::size_t size) {
    std::vector<float> values = from_device(device, buffer);
    if (type == narrow) {
        std::vector<float> numbers;
        for (const float pair : values) {
            const auto bits = std::bit_cast<std::uint32_t>(pair);
            numbers.push_back(std::bit_cast<float>(bits << 16));
            numbers.push_back(std::bit_cast<float>(bits >> 16 << 16));
        }
        values = numbers;
    }
    CHECK(values[size] == 77);
    CHECK(values[size + 1] == 77);
    values.resize(size);
    return values;
}

struct Inputs {
    Tensor x, other, parameters, buffers, grad_y;
};
struct Outputs {
    std::vector<float> y, grad_x, grad_other, grad_parameters, buffers, validated;
    bool operator==(const Outputs&) const = default;
};

/// Runs a step with `samples` of the `batch` samples, then a validation.
template <class Shape>
Outputs run(Device& device, const Shape& shape, const Inputs& inputs, std::int64_t batch, std::int64_t samples) {
    const auto operation = device.make(shape);
    const Buffer x = stored(device, inputs.x, shape.x_type);
    const Buffer other = stored(device, inputs.other, shape.x_type);
    const Buffer parameters = on_device(device, inputs.parameters);
    const Buffer buffers = on_device(device, inputs.buffers);
    const Buffer y = stored(device, Tensor(inputs.grad_y.size(), 5), shape.y_type);
    const Buffer grad_y = stored(device, inputs.grad_y, shape.y_type);
    const Buffer grad_x = stored(device, Tensor(inputs.x.size(), 5), shape.x_type);
    const Buffer grad_other = stored(device, Tensor(inputs.other.size(), 5), shape.x_type);
    const Buffer grad_parameters = on_device(device, Tensor(inputs.parameters.size(), 77));
    std::vector<const float*> from{x.data()};
    std::vector<float*> grads{grad_x.data()};
    if (!inputs.other.empty()) {
        from.push_back(other.data());
        grads.push_back(grad_other.data());
    }
    Outputs out;
    TrialStep step(device, batch, samples);
    operation->pack(parameters.data(), buffers.data());
    operation->forward(step.pass(), from, y.data());
    out.y = read(device, y, shape.y_type, inputs.grad_y.size());
    operation->backward(step.pass(), from, y.data(), grad_y.data(), grads, grad_parameters.data());
    out.grad_x = read(device, grad_x, shape.x_type, inputs.x.size());
    out.grad_other = read(device, grad_other, shape.x_type, inputs.other.size());
    out.grad_parameters = from_device(device, grad_parameters);
    out.buffers = from_device(device, buffers);
    operation->forward(step.pass(Mode::validation), from, y.data());
    out.validated = read(device, y, shape.y_type, inputs.grad_y.size());
    return out;
}

double apart(const std::vector<float>& actual, const std::vector<float>& expected) {
    return difference(actual, Tensor(expected.begin(), expected.end()));
}

/// Returns how much `actual`, numbers of `type`, differ from `expected` beyond one rounding to this type, relative to
/// the largest entry. The rounding to bfloat16 changes a number by 2⁻⁸ of it at most.
double beyond_rounding(std::vector<float> actual, const std::vector<float>& expected, TensorType type) {
    for (std::size_t i = 0; type == narrow && i < std::min(actual.size(), expected.size()); ++i) {
        const float most = std::abs(expected[i]) / 256;
        const float by = std::clamp(actual[i] - expected[i], -most, most);
        actual[i] -= by;
    }
    return apart(actual, expected);
}

/// The largest accepted differences beyond the rounding of the result.
struct Most {
    double y = 1e-5;
    double grads = 1e-5;
    double parameters = 1e-5;
};

/// Compares a shape with the types `x` and `y` with the same shape in float32.
template <class Shape>
void check(Device& device, Shape shape, const Inputs& inputs, std::int64_t batch, std::int64_t samples, TensorType x,
           TensorType y, Most most = {}) {
    CAPTURE(static_cast<int>(x));
    CAPTURE(static_cast<int>(y));
    const Outputs expected = run(device, shape, inputs, batch, samples);
    shape.x_type = x;
    shape.y_type = y;
    REQUIRE(device.supports_types(shape));
    const Outputs actual = run(device, shape, inputs, batch, samples);
    CHECK(beyond_rounding(actual.y, expected.y, y) < most.y);
    CHECK(beyond_rounding(actual.validated, expected.validated, y) < most.y);
    CHECK(beyond_rounding(actual.grad_x, expected.grad_x, x) < most.grads);
    CHECK(beyond_rounding(actual.grad_other, expected.grad_other, x) < most.grads);
    CHECK(apart(actual.grad_parameters, expected.grad_parameters) < most.parameters);
    CHECK(apart(actual.buffers, expected.buffers) < 1e-5);
    CHECK(same_in_every_order([&] { return run(device, shape, inputs, batch, samples) == actual; }));
    // Only one stream of a device launches cooperative kernels.
    CHECK(run(*device.new_stream(), shape, inputs, batch, samples) == actual);
}

Inputs inputs_for(std::size_t x, std::size_t y, std::size_t parameters, bool has_other = false) {
    RandomStream random(41, Purpose::test, x);
    return {.x = rounded(normal_tensor(random, x)),
            .other = rounded(normal_tensor(random, has_other ? x : 0)),
            .parameters = normal_tensor(random, parameters, 0.3),
            .buffers = Tensor(parameters, 1),
            .grad_y = rounded(normal_tensor(random, y))};
}

ConvolutionShape convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
    return {.batch = 2,
            .height = 6,
            .width = 7,
            .channels_in = in,
            .channels_out = out,
            .kernel = kernel,
            .stride = stride,
            .padding_before = (kernel - 1) / 2,
            .padding_after = kernel / 2,
            .precision = Precision::bfloat16};
}
std::size_t outputs_of(const ConvolutionShape& s) {
    return static_cast<std::size_t>(s.batch * s.height_out() * s.width_out() * s.channels_out);
}

}  // namespace

TEST_CASE("convolutions with bfloat16 tensors match float32 for each activation, stride and mix of types") {
    const auto device = make_device();
    for (const auto& [in, out, kernel, stride, activation] : {std::tuple{32, 24, 3, 1, Activation::relu},
                                                              {24, 32, 3, 2, Activation::none},
                                                              {40, 24, 1, 2, Activation::sigmoid},
                                                              {24, 24, 5, 1, Activation::tanh}}) {
        ConvolutionShape shape = convolution(in, out, kernel, stride);
        shape.activation = activation;
        CAPTURE(in);
        CAPTURE(kernel);
        const Inputs inputs = inputs_for(input_size(shape), outputs_of(shape), parameter_count(shape));
        for (const auto& [x, y] : {std::pair{narrow, narrow}, {narrow, wide}, {wide, narrow}}) {
            // With float32 the gradients of the weights are TF32. Those of bfloat16 are rounded, as is grad_y · f′.
            check(*device, shape, inputs, 1, 1, x, y, {.y = 4e-3, .grads = 8e-3, .parameters = 8e-3});
        }
    }
    ConvolutionShape images = convolution(3, 32, 3);
    const Inputs inputs = inputs_for(input_size(images), outputs_of(images), parameter_count(images));
    check(*device, images, inputs, 1, 1, wide, narrow, {.y = 4e-3, .grads = 8e-3, .parameters = 8e-3});
}

TEST_CASE("convolutions store bfloat16 only where cuDNN needs no copy, and only in this precision") {
    const auto device = make_device();
    const auto supports = [&](ConvolutionShape shape, TensorType x, TensorType y) {
        shape.x_type = x;
        shape.y_type = y;
        return device->supports_types(shape);
    };
    CHECK(supports(convolution(32, 24, 3), narrow, narrow));
    CHECK_FALSE(supports(convolution(33, 24, 3), narrow, narrow));
    CHECK(supports(convolution(33, 24, 3), wide, narrow));
    CHECK_FALSE(supports(convolution(32, 20, 3), narrow, narrow));
    CHECK(supports(convolution(32, 20, 3), narrow, wide));
    CHECK_FALSE(supports(convolution(32, 24, 4), narrow, narrow));  // `same` pads an even kernel unevenly
    for (const Precision other : {Precision::float32, Precision::tf32, Precision::float16}) {
        ConvolutionShape shape = convolution(32, 24, 3);
        shape.precision = other;
        CHECK_FALSE(supports(shape, narrow, narrow));
        CHECK(supports(shape, wide, wide));
    }
}

TEST_CASE("other operations store bfloat16 only in multiples of 8 numbers, which their kernels read at once") {
    const auto device = make_device();
    const auto supports = [&](auto shape) {
        shape.x_type = shape.y_type = narrow;
        return device->supports_types(shape);
    };
    for (const std::int64_t channels : {8, 12, 33}) {
        const bool is_multiple = channels == 8;
        CAPTURE(channels);
        CHECK(supports(BatchNormShape{.batch = 2, .pixels = 4, .channels = channels}) == is_multiple);
        CHECK(supports(PoolingShape{.batch = 2, .height = 4, .width = 4, .channels = channels}) == is_multiple);
        CHECK(supports(MeanShape{.batch = 2, .pixels = 4, .channels = channels}) == is_multiple);
        CHECK(supports(ActivationShape{.count = channels}) == is_multiple);
        CHECK(supports(AddShape{.count = channels}) == is_multiple);
        CHECK(supports(ConcatenateShape{.rows = 3, .first = 8, .second = channels}) == is_multiple);
    }
}

TEST_CASE("convolutions with bfloat16 tensors need no scratch memory for copies") {
    const auto device = make_device();
    ConvolutionShape shape = convolution(32, 32, 3);
    shape.batch = 10'000;
    const auto bytes_of_x = static_cast<std::int64_t>(input_size(shape) * 2);
    CHECK(device->scratch_bytes(shape) > 2 * bytes_of_x);  // copies in bfloat16 of x and y
    shape.x_type = shape.y_type = narrow;
    if (!on_a_gpu()) {  // there cuDNN's workspace may be larger
        CHECK(device->scratch_bytes(shape) < bytes_of_x);
    }
}

TEST_CASE("batch_norm with bfloat16 tensors matches float32, also with padding") {
    constexpr std::int64_t batch = 6;
    // With one multiprocessor, a thread has more rows in backward than shared memory can hold (1100 pixels), and 304
    // channels need 5 blocks, too many for a cooperative launch.
    for (const auto& [multiprocessors, pixels, channels] :
         {std::tuple{132, 1, 8}, {132, 49, 24}, {132, 300, 8}, {132, 9, 304}, {1, 1100, 8}, {1, 3, 304}}) {
        rehearsal::set_multiprocessors(multiprocessors);
        const auto device = make_device();
        for (const Activation activation : {Activation::none, Activation::relu, Activation::sigmoid})
            for (const std::int64_t samples : {6, 4}) {
                const BatchNormShape shape{.batch = batch,
                                           .pixels = pixels,
                                           .channels = channels,
                                           .momentum = 0.3,
                                           .epsilon = pixels == 1 ? 1 : 1e-5,
                                           .activation = activation};
                CAPTURE(multiprocessors);
                CAPTURE(pixels);
                CAPTURE(channels);
                const Inputs inputs = inputs_for(input_size(shape), input_size(shape), parameter_count(shape));
                for (const auto& [x, y] : {std::pair{narrow, narrow}, {narrow, wide}, {wide, narrow}}) {
                    // The slope of sigmoid is computed from the rounded y.
                    const double grads = activation == Activation::sigmoid ? 4e-3 : 1e-5;
                    check(*device, shape, inputs, batch, samples, x, y, {.grads = grads, .parameters = grads});
                }
            }
    }
    rehearsal::set_multiprocessors(132);
}

TEST_CASE("a convolution leaves its bias to the batch normalisation after it") {
    const auto device = make_device();
    ConvolutionShape shape = convolution(24, 32, 3);
    shape.x_type = shape.y_type = narrow;
    Inputs inputs = inputs_for(input_size(shape), outputs_of(shape), parameter_count(shape));
    shape.skips_bias = true;
    const Outputs skipped = run(*device, shape, inputs, 1, 1);
    const std::vector<float> bias(inputs.parameters.end() - 32, inputs.parameters.end());
    std::fill(inputs.parameters.end() - 32, inputs.parameters.end(), 0);
    shape.skips_bias = false;
    const Outputs without = run(*device, shape, inputs, 1, 1);
    CHECK(skipped.y == without.y);
    CHECK(skipped.grad_x == without.grad_x);
    CHECK(std::vector<float>(skipped.grad_parameters.end() - 32, skipped.grad_parameters.end()) ==
          std::vector<float>(32, 77));

    // The parameters of the normalisation, 5 others, and the bias.
    BatchNormShape norm{.batch = 6, .pixels = 10, .channels = 32, .momentum = 0.3};
    const Inputs of_norm = inputs_for(input_size(norm), input_size(norm), parameter_count(norm));
    Inputs biased = of_norm;
    Inputs shifted = of_norm;
    biased.parameters.insert(biased.parameters.end(), 5, 3);
    biased.parameters.insert(biased.parameters.end(), bias.begin(), bias.end());
    for (std::size_t i = 0; i < shifted.x.size(); ++i) {
        shifted.x[i] += double{bias[i % 32]};
    }
    const Outputs expected = run(*device, norm, shifted, 6, 6);
    norm.skipped_bias_offset = 64 + 5;
    const Outputs actual = run(*device, norm, biased, 6, 6);
    CHECK(apart(actual.y, expected.y) < 1e-5);
    CHECK(apart(actual.validated, expected.validated) < 1e-5);
    CHECK(apart(actual.grad_x, expected.grad_x) < 1e-5);
    CHECK(apart({actual.buffers.begin(), actual.buffers.begin() + 64}, expected.buffers) < 1e-5);
    CHECK(apart({actual.grad_parameters.begin(), actual.grad_parameters.begin() + 64}, expected.grad_parameters) <
          1e-5);
    CHECK(std::vector<float>(actual.grad_parameters.end() - 37, actual.grad_parameters.end() - 32) ==
          std::vector<float>(5, 77));
    CHECK(std::vector<float>(actual.grad_parameters.end() - 32, actual.grad_parameters.end()) ==
          std::vector<float>(32));
}

TEST_CASE("sums, activations, poolings, means and concatenations of bfloat16 match float32") {
    const auto device = make_device();
    for (const Activation activation : {Activation::none, Activation::relu, Activation::tanh}) {
        const AddShape shape{.count = 1000, .activation = activation};
        // The slope of tanh is computed from the rounded y.
        check(*device, shape, inputs_for(1000, 1000, 0, true), 1, 1, narrow, narrow,
              {.grads = activation == Activation::tanh ? 4e-3 : 1e-5});
    }
    for (const Activation activation : {Activation::leaky_relu, Activation::gelu, Activation::silu}) {
        const ActivationShape shape{.count = 808, .activation = activation};
        check(*device, shape, inputs_for(808, 808, 0), 1, 1, narrow, narrow);
    }
    for (const Pooling kind : {Pooling::max, Pooling::average}) {
        const PoolingShape shape{
            .kind = kind, .batch = 3, .height = 7, .width = 6, .channels = 16, .kernel = 3, .stride = 2, .padding = 1};
        const auto outputs = static_cast<std::size_t>(3 * shape.height_out() * shape.width_out() * 16);
        for (const TensorType y : {narrow, wide}) {
            check(*device, shape, inputs_for(input_size(shape), outputs, 0), 1, 1, narrow, y);
        }
    }
    const MeanShape mean{.batch = 5, .pixels = 12, .channels = 8};
    for (const TensorType y : {narrow, wide}) {
        check(*device, mean, inputs_for(input_size(mean), 40, 0), 1, 1, narrow, y);
    }
    const ConcatenateShape both{.rows = 9, .first = 8, .second = 8};
    check(*device, both, inputs_for(72, 144, 0, true), 1, 1, narrow, narrow);
}
