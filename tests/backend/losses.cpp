#include "finch/backend/device.hpp"

#include "backend/make_device.hpp"
#include "backend/tensors.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <utility>

using namespace finch;
using namespace finch::backend;
using reference::Tensor;
using test::from_device;
using test::make_device;
using test::on_device;

namespace {

constexpr double loss_tolerance = 1e-6;  ///< relative to each tensor's largest entry

struct Result {
    LossSums sums;
    std::vector<float> grad;
};

/// Computes the loss of one step and its gradient. `loss` reads `values`: the outputs of one sample per index. The sums
/// are added to `before`.
template <class Loss>
Result result_of(const Images& images, const std::vector<std::int64_t>& indices, const Tensor& values,
                 const StepScalars& scalars, const Loss& loss, const LossSums& before = {}) {
    const auto device = make_device();
    const auto context = device->make_step_context(images, static_cast<std::int64_t>(indices.size()));
    const Buffer device_values = on_device(*device, values);
    const Buffer grad = on_device(*device, std::vector<float>(values.size(), 77));
    context->set_sums(before);
    context->fill(indices, std::vector<StepScalars>{scalars});
    begin_step(*device, *context, indices.size() * static_cast<std::size_t>(images.pixels_per_image));
    loss(*device, *context, device_values.data(), grad.data());
    device->synchronize();
    return {context->sums(), from_device(*device, grad)};
}

/// Returns the gradient of `loss` at `values` (one sample) by central differences.
template <class Loss>
Tensor finite_differences(Tensor values, const Loss& loss) {
    constexpr double step = 1e-4;
    Tensor gradient;
    for (double& value : values) {
        const double there = std::exchange(value, value + step);
        const double above = loss(values);
        value = there - step;
        gradient.push_back((above - loss(values)) / (2 * step));
        value = there;
    }
    return gradient;
}

/// Returns −Σ w_c · target_c · log softmax(logits)_c, as torch.nn.CrossEntropyLoss documents it.
double weighted_cross_entropy(const Tensor& logits, std::size_t label, const std::vector<float>& weights,
                              double smoothing) {
    double sum = 0;
    for (const double logit : logits) {
        sum += std::exp(logit);
    }
    double loss = 0;
    for (std::size_t c = 0; c < logits.size(); ++c) {
        const double target = (c == label ? 1 - smoothing : 0) + smoothing / static_cast<double>(logits.size());
        loss -= static_cast<double>(weights[c]) * target * (logits[c] - std::log(sum));
    }
    return loss;
}

}  // namespace

TEST_CASE("class weights multiply each class's term of the cross-entropy, as in PyTorch") {
    const std::vector<std::uint8_t> pixels(2);
    const std::vector<std::int32_t> labels{2, 0};
    const Images images{.pixels = pixels, .labels = labels, .pixels_per_image = 1, .class_weights = {1, 2, 0.5F}};
    const auto loss = [](Device& device, StepContext& context, const float* logits, float* grad) {
        device.softmax_cross_entropy(context, logits, 3, grad);
    };
    // torch.nn.CrossEntropyLoss(weight=[1, 2, 0.5], label_smoothing=S, reduction="sum") gives these losses in double.
    CHECK(result_of(images, {0, 1}, {1, 2, 3, 0, 0, 1}, {.grad_scale = 1}, loss).sums.loss ==
          doctest::Approx(1.7552476961542414).epsilon(1e-9));
    CHECK(result_of(images, {0, 1}, {1, 2, 3, 0, 0, 1}, {.grad_scale = 1, .label_smoothing = 0.1F}, loss).sums.loss ==
          doctest::Approx(1.9249455056827343).epsilon(1e-8));
}

TEST_CASE("class weights: loss and gradient follow the definition, for any number of classes") {
    RandomStream random(21, Purpose::test);
    for (const std::size_t classes : {2U, 5U, 40U}) {
        for (const float smoothing : {0.0F, 0.25F}) {
            CAPTURE(classes);
            CAPTURE(smoothing);
            const Tensor logits = normal_tensor(random, 3 * classes, 2);
            std::vector<float> weights;
            for (std::size_t c = 0; c < classes; ++c) {
                weights.push_back(0.25F + 0.5F * static_cast<float>(c % 4));
            }
            const std::vector<std::uint8_t> pixels(3);
            const std::vector<std::int32_t> labels{1, 0, static_cast<std::int32_t>(classes - 1)};
            const Images images{.pixels = pixels, .labels = labels, .pixels_per_image = 1, .class_weights = weights};

            const Result result =
                result_of(images, {2, 0, -1}, logits, {.grad_scale = 0.5F, .label_smoothing = smoothing},
                          [&](Device& device, StepContext& context, const float* values, float* grad) {
                              device.softmax_cross_entropy(context, values, static_cast<std::int64_t>(classes), grad);
                          });

            double expected = 0;
            Tensor gradient;
            for (const std::size_t row : {0U, 1U}) {
                const auto label = static_cast<std::size_t>(labels[row == 0 ? 2 : 0]);
                const auto first = logits.begin() + static_cast<std::ptrdiff_t>(row * classes);
                const Tensor of_row(first, first + static_cast<std::ptrdiff_t>(classes));
                const auto of = [&](const Tensor& at) {
                    return weighted_cross_entropy(at, label, weights, static_cast<double>(smoothing));
                };
                expected += of(of_row);
                for (const double value : finite_differences(of_row, of)) {
                    gradient.push_back(value / 2);
                }
            }
            gradient.resize(3 * classes);  // padding has no gradient
            CHECK(result.sums.loss == doctest::Approx(expected).epsilon(1e-6));
            CHECK(result.sums.samples == 2);
            CHECK(difference(result.grad, gradient) < loss_tolerance);
        }
    }
}

TEST_CASE("regression_loss: the mean over a target's numbers, and its gradient; padding is ignored") {
    RandomStream random(22, Purpose::test);
    for (const std::size_t outputs : {1U, 3U, 50U}) {
        for (const Regression kind : {Regression::squared, Regression::absolute}) {
            CAPTURE(outputs);
            CAPTURE(static_cast<int>(kind));
            std::vector<float> targets;
            for (const double value : normal_tensor(random, 4 * outputs, 3)) {
                targets.push_back(static_cast<float>(value));
            }
            const Tensor values = normal_tensor(random, 3 * outputs, 3);
            const std::vector<std::uint8_t> pixels(4);
            const Images images{.pixels = pixels,
                                .labels = {},
                                .targets = targets,
                                .pixels_per_image = 1,
                                .target_size = static_cast<std::int64_t>(outputs)};

            const Result result = result_of(
                images, {3, 1, -1}, values, {.grad_scale = 0.5F},
                [&](Device& device, StepContext& context, const float* predictions, float* grad) {
                    device.regression_loss(context, kind, predictions, static_cast<std::int64_t>(outputs), grad);
                },
                {.loss = 2, .correct = 0, .samples = 7});

            double expected = 2;
            Tensor gradient;
            for (const std::size_t row : {0U, 1U}) {
                const float* const target = targets.data() + (row == 0 ? 3 : 1) * outputs;
                const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * outputs);
                const Tensor of_row(first, first + static_cast<std::ptrdiff_t>(outputs));
                const auto of = [&](const Tensor& at) {
                    double sum = 0;
                    for (std::size_t i = 0; i < outputs; ++i) {
                        const double error = at[i] - static_cast<double>(target[i]);
                        sum += kind == Regression::squared ? error * error : std::abs(error);
                    }
                    return sum / static_cast<double>(outputs);
                };
                expected += of(of_row);
                for (const double value : finite_differences(of_row, of)) {
                    gradient.push_back(value / 2);
                }
            }
            gradient.resize(3 * outputs);
            CHECK(result.sums.loss == doctest::Approx(expected).epsilon(1e-6));
            CHECK(result.sums.samples == 9);
            CHECK(result.sums.correct == 0);
            CHECK(difference(result.grad, gradient) < loss_tolerance);
        }
    }
}

TEST_CASE("regression_loss: an absolute error of 0 has gradient 0; a NaN prediction gives a NaN loss") {
    const std::vector<std::uint8_t> pixels(2);
    const std::vector<float> targets{1.5F, -2};
    const Images images{.pixels = pixels, .labels = {}, .targets = targets, .pixels_per_image = 1, .target_size = 1};
    const auto absolute = [](Device& device, StepContext& context, const float* predictions, float* grad) {
        device.regression_loss(context, Regression::absolute, predictions, 1, grad);
    };

    const Result equal = result_of(images, {0, 1}, {1.5, -2.5}, {.grad_scale = 1}, absolute);
    CHECK(equal.grad == std::vector<float>{0, -1});
    CHECK(equal.sums.loss == 0.5);

    CHECK(std::isnan(result_of(images, {0, 1}, {std::nan(""), 0}, {.grad_scale = 1}, absolute).sums.loss));
}

TEST_CASE("load_batch: float pixels are normalised per channel without scaling to [0, 1], mirrored or not") {
    const std::vector<float> values{1, -2, 3e3F, 4, 0.5F, -6, 7, 8};  // 2 images of 1 x 2 pixels and 2 channels
    std::vector<std::uint8_t> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    const std::vector<std::int32_t> labels{0, 0};
    Images images{.pixels = bytes,
                  .labels = labels,
                  .pixels_per_image = 4,
                  .float_pixels = true,
                  .mean = {1, -2},
                  .deviation = {2, 0.5F}};
    const std::vector<std::int64_t> indices{1, 0, -1};
    const std::vector<float> expected{-0.25F, -8, 3, 20, 0, 0, 1499.5F, 12, 0, 0, 0, 0};
    for (const bool mirrored : {false, true}) {
        images.distortions = {.mirrors = mirrored ? 1 : 0, .height = 1, .width = 2};
        const auto device = make_device();
        const auto context = device->make_step_context(images, 3);
        const Buffer out = device->allocate(expected.size());
        context->fill(indices, std::vector<StepScalars>{{.random_key = {3, 4}}});
        device->next_step(*context);
        device->load_batch(*context, out.data());
        const std::vector<float> loaded = from_device(*device, out);
        for (std::size_t image = 0; image < 3; ++image) {
            const Distortion by = images.distortions.of({{3, 4}}, static_cast<std::int64_t>(image));
            for (std::size_t i = 0; i < 4; ++i) {
                const std::size_t from = by.is_mirrored != 0 ? (i + 2) % 4 : i;
                CHECK(loaded[image * 4 + i] == expected[image * 4 + from]);
            }
        }
    }
}
