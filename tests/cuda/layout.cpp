#include "layout.hpp"

#include "backend/tensors.hpp"
#include "cuda/device_array.hpp"
#include "support/float16.hpp"

#include <cmath>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <doctest/doctest.h>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

using namespace finch;
using namespace finch::backend;
using namespace finch::backend::cuda;
using finch::test::DeviceArray;
using finch::test::same_in_every_order;
using finch::test::to_float16;

namespace {

std::vector<float> random_floats(std::int64_t count, double scale = 1) {
    RandomStream random(21, Purpose::test, static_cast<std::uint64_t>(count));
    const reference::Tensor values = normal_tensor(random, static_cast<std::size_t>(count), scale);
    return {values.begin(), values.end()};
}

float widened(__nv_bfloat16 value) {
    return __bfloat162float(value);
}
float widened(__half value) {
    return __half2float(value);
}
template <class Number>
std::vector<float> widened(const std::vector<Number>& values) {
    std::vector<float> result;
    for (const Number value : values) {
        result.push_back(widened(value));
    }
    return result;
}
/// Rounds values to `Number`, a type of 16 bits, with the tests' own conversions.
template <class Number>
std::vector<float> rounded(std::vector<float> values) {
    for (float& value : values) {
        value = std::is_same_v<Number, __half> ? to_float16(value) : to_bfloat16(value);
    }
    return values;
}
template <class Number>
std::vector<Number> narrowed(const std::vector<float>& values) {
    std::vector<Number> result;
    for (const float value : rounded<Number>(values)) {
        result.push_back(Number(value));  // exact
    }
    return result;
}

/// Returns `count` elements with the value 77, which a call must overwrite.
template <class T>
std::vector<T> old_values(std::int64_t count) {
    return std::vector<T>(static_cast<std::size_t>(count), T(77.0F));
}

std::size_t at(std::int64_t index) {
    return static_cast<std::size_t>(index);
}

template <class Number>
constexpr TensorType type_of = std::is_same_v<Number, float>    ? TensorType::float32
                               : std::is_same_v<Number, __half> ? TensorType::float16
                                                                : TensorType::bfloat16;
template <class Number>
Source source(const DeviceArray<Number>& array) {
    return {array.data(), type_of<Number>};
}
template <class Number>
Target target(const DeviceArray<Number>& array) {
    return {array.data(), type_of<Number>};
}

}  // namespace

TEST_CASE_TEMPLATE(
    "copy_channels: channels are added as zeros, dropped or kept; values are rounded to 16 bits if requested", Number,
    __nv_bfloat16, __half) {
    // Normal numbers, numbers below float16's smallest, and numbers around float16's largest.
    for (const auto& [from_channels, to_channels, scale] :
         {std::tuple{10, 16, 1.0}, {16, 10, 1e-7}, {3, 3, 7e4}, {1, 8, 1e-5}, {8, 8, 7e4}, {16, 16, 1e-7}}) {
        constexpr std::int64_t rows = 77;
        const std::vector<float> from = random_floats(rows * from_channels, scale);
        std::vector<float> expected;
        for (std::int64_t i = 0; i < rows * to_channels; ++i) {
            const std::int64_t channel = i % to_channels;
            expected.push_back(channel < from_channels ? from[at(i / to_channels * from_channels + channel)] : 0.0F);
        }
        const UniqueStream stream = make_stream();
        const DeviceArray device(from);
        const DeviceArray to(old_values<float>(rows * to_channels));
        const DeviceArray narrow(old_values<Number>(rows * to_channels));
        const DeviceArray back(old_values<float>(rows * to_channels));

        copy_channels(stream.get(), source(device), rows, from_channels, target(to), to_channels);
        copy_channels(stream.get(), source(device), rows, from_channels, target(narrow), to_channels);
        copy_channels(stream.get(), source(narrow), rows, to_channels, target(back), to_channels);

        CHECK(to.values() == expected);
        CHECK(widened(narrow.values()) == rounded<Number>(expected));
        CHECK(back.values() == rounded<Number>(expected));
    }
}

TEST_CASE("transpose: transposes each matrix of a batch, at odd sizes") {
    for (const auto& [batch, rows, columns] :
         {std::tuple{1, 1, 1}, {3, 784, 10}, {3, 10, 784}, {2, 33, 65}, {5, 32, 32}, {40, 7, 3}}) {
        const std::vector<float> from = random_floats(batch * rows * columns);
        std::vector<float> expected(from.size());
        for (std::int64_t n = 0; n < batch; ++n)
            for (std::int64_t r = 0; r < rows; ++r)
                for (std::int64_t c = 0; c < columns; ++c) {
                    expected[at((n * columns + c) * rows + r)] = from[at((n * rows + r) * columns + c)];
                }
        const UniqueStream stream = make_stream();
        const DeviceArray device(from);
        const DeviceArray to(old_values<float>(batch * rows * columns));

        transpose(stream.get(), device.data(), batch, rows, columns, to.data());

        CHECK(to.values() == expected);
    }
}

TEST_CASE_TEMPLATE("pack_weights: every weight of every pair of channels moves to its new index; padding is zero",
                   Number, __nv_bfloat16, __half) {
    for (const auto& [out, in, kernel, padded_out, padded_in] :
         {std::tuple{10, 10, 3, 16, 16}, {5, 3, 5, 8, 4}, {4, 4, 1, 4, 4}, {7, 1, 2, 8, 8}}) {
        const auto copy = [=](const auto& from, const auto& to, TensorType type = TensorType::float32) {
            return WeightCopy{.channels_out = out,
                              .channels_in = in,
                              .taps = kernel * kernel,
                              .padded_out = padded_out,
                              .padded_in = padded_in,
                              .from = from.data(),
                              .to = to.data(),
                              .type = type};
        };
        const std::vector<float> canonical = random_floats(out * in * kernel * kernel);
        std::vector<float> expected(at(padded_out * kernel * kernel * padded_in));
        for (std::int64_t o = 0; o < out; ++o)
            for (std::int64_t i = 0; i < in; ++i)
                for (std::int64_t row = 0; row < kernel; ++row)
                    for (std::int64_t column = 0; column < kernel; ++column) {
                        expected[at(((o * kernel + row) * kernel + column) * padded_in + i)] =
                            canonical[at(((o * in + i) * kernel + row) * kernel + column)];
                    }
        const UniqueStream stream = make_stream();
        const DeviceArray device(canonical);
        const DeviceArray packed(old_values<float>(static_cast<std::int64_t>(expected.size())));
        const DeviceArray narrow(old_values<Number>(static_cast<std::int64_t>(expected.size())));
        const DeviceArray back(old_values<float>(static_cast<std::int64_t>(canonical.size())));

        const std::vector<WeightCopy> to_pack{copy(device, packed), copy(device, narrow, type_of<Number>)};
        const std::vector<WeightCopy> to_unpack{copy(packed, back)};
        pack_weights(stream.get(), to_pack);
        unpack_weights(stream.get(), to_unpack);

        CHECK(packed.values() == expected);
        CHECK(widened(narrow.values()) == rounded<Number>(expected));
        CHECK(back.values() == canonical);
    }
}

TEST_CASE_TEMPLATE("bias_activation: computes f(x + bias), drops surplus channels, works in place and without a bias",
                   Number, __nv_bfloat16, __half) {
    constexpr std::int64_t rows = 45;
    const auto check = [](Activation activation, std::int64_t channels) {
        CAPTURE(channels);
        const std::vector<float> from = random_floats(rows * 16);
        const std::vector<float> bias = random_floats(channels);
        const auto expected = [&](const std::vector<float>& source, std::int64_t stride, bool biased) {
            reference::Tensor result;
            for (std::int64_t i = 0; i < rows * channels; ++i) {
                const double value = static_cast<double>(source[at(i / channels * stride + i % channels)]);
                result.push_back(reference::activate(
                    activation, value + (biased ? static_cast<double>(bias[at(i % channels)]) : 0)));
            }
            return result;
        };
        const std::vector<float> narrow_source(from.begin(), from.begin() + rows * channels);
        const UniqueStream stream = make_stream();
        const DeviceArray device(from);
        const DeviceArray device_narrow(narrowed<Number>(from));
        const DeviceArray device_bias(bias);
        const DeviceArray in_place(narrow_source);
        const DeviceArray y(old_values<float>(rows * channels));
        const DeviceArray narrow_y(old_values<float>(rows * channels));

        bias_activation(stream.get(), activation, source(device), 16, device_bias.data(), target(y), rows, channels);
        bias_activation(stream.get(), activation, source(device_narrow), 16, device_bias.data(), target(narrow_y), rows,
                        channels);
        bias_activation(stream.get(), activation, source(in_place), channels, nullptr, target(in_place), rows,
                        channels);

        CHECK(difference(y.values(), expected(from, 16, true)) < 1e-6);
        CHECK(difference(narrow_y.values(), expected(rounded<Number>(from), 16, true)) < 1e-6);
        CHECK(difference(in_place.values(), expected(narrow_source, channels, false)) < 1e-6);
    };
    for (const Activation activation : finch::fused_activations()) {
        check(activation, 10);
        check(activation, 12);
    }
}

TEST_CASE_TEMPLATE("move_images: adds zero padding around images and channels, and removes it, in float32 and 16 bits",
                   Number, __nv_bfloat16, __half) {
    constexpr std::int64_t batch = 3;
    const ImageSizes small{.height = 5, .width = 4, .channels = 3};
    const ImageSizes wide{.height = 8, .width = 7, .channels = 8};
    const std::vector<float> images = random_floats(batch * 5 * 4 * 3);
    std::vector<float> padded(at(batch * 8 * 7 * 8));
    for (std::int64_t i = 0; i < std::ssize(images); ++i) {
        const std::int64_t n = i / 60, row = i / 12 % 5, column = i / 3 % 4, channel = i % 3;
        padded[at(((n * 8 + row + 1) * 7 + column + 1) * 8 + channel)] = images[at(i)];
    }
    const UniqueStream stream = make_stream();
    const DeviceArray from(images);
    const DeviceArray to(old_values<float>(std::ssize(padded)));
    const DeviceArray narrow(old_values<Number>(std::ssize(padded)));
    const DeviceArray back(old_values<float>(std::ssize(images)));
    const DeviceArray narrow_back(old_values<float>(std::ssize(images)));

    move_images(stream.get(), batch, source(from), small, target(to), wide, 1);
    move_images(stream.get(), batch, source(from), small, target(narrow), wide, 1);
    move_images(stream.get(), batch, source(to), wide, target(back), small, -1);
    move_images(stream.get(), batch, source(narrow), wide, target(narrow_back), small, -1);

    CHECK(to.values() == padded);
    CHECK(widened(narrow.values()) == rounded<Number>(padded));
    CHECK(back.values() == images);
    CHECK(narrow_back.values() == rounded<Number>(images));
}

TEST_CASE_TEMPLATE(
    "bias_gradient: multiplies the gradient by the slope at y, and sums it; the order of threads changes no bit",
    Number, float, __nv_bfloat16) {
    const auto numbers = [](const std::vector<float>& values) {
        if constexpr (std::is_same_v<Number, float>) {
            return values;
        } else {
            return narrowed<Number>(values);
        }
    };
    const auto floats = [](const std::vector<Number>& values) {
        if constexpr (std::is_same_v<Number, float>) {
            return values;
        } else {
            return widened(values);
        }
    };
    const std::int64_t unit = std::is_same_v<Number, float> ? 1 : 8;
    for (const auto& [rows, groups, activation] : {std::tuple{1, 1, Activation::none},
                                                   {8, 10, Activation::relu},
                                                   {1000, 10, Activation::none},
                                                   {3000, 3, Activation::sigmoid},
                                                   {100, 33, Activation::tanh},
                                                   {31, 300, Activation::relu}}) {
        CAPTURE(rows);
        CAPTURE(groups);
        const std::int64_t channels = groups * unit;
        const std::vector<Number> y = numbers(random_floats(rows * channels, 0.3));
        const std::vector<Number> grad_y = numbers(random_floats(rows * channels + unit));
        reference::Tensor expected;
        const std::vector<float> at_y = floats(y);
        const std::vector<float> before = floats(grad_y);
        for (std::size_t i = 0; i < y.size(); ++i) {
            expected.push_back(reference::slope(activation, double{at_y[i]}) * double{before[i]});
        }
        std::vector<float> grads;
        const auto run = [&] {
            const UniqueStream stream = make_stream();
            const DeviceArray device_y(y);
            const DeviceArray grad(grad_y);
            const DeviceArray partial(std::vector<float>(bias_gradient_partials(rows, channels) / sizeof(float)));
            const DeviceArray to(old_values<float>(channels));
            const std::vector<PartialSums> sums{bias_gradient(stream.get(), activation, source(device_y), target(grad),
                                                              rows, channels, partial.data(), to.data())};
            add_partials(stream.get(), sums);
            grads = floats(grad.values());
            return to.values();
        };
        const std::vector<float> sums = run();
        CHECK(grads.back() == before.back());  // an element after the last one
        grads.resize(expected.size());
        CHECK(difference(grads, expected) < (std::is_same_v<Number, float> ? 1e-6 : 4e-3));
        reference::Tensor exact_sums(at(channels));
        for (std::int64_t i = 0; i < rows * channels; ++i) {
            exact_sums[at(i % channels)] += double{grads[at(i)]};  // the sums are those of the rounded gradients
        }
        CHECK(difference(sums, exact_sums) < 1e-5);
        CHECK(same_in_every_order(run));
    }
}
