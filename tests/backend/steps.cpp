#include "finch/backend/device.hpp"

#include "backend/make_device.hpp"
#include "backend/tensors.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>

using namespace finch;
using namespace finch::backend;
using reference::Tensor;
using test::from_device;
using test::make_device;
using test::on_device;

namespace {

constexpr double step_tolerance = 1e-5;  ///< relative to each tensor's largest entry

/// One-pixel images with the labels `of`: the input that a loss needs.
struct Labels {
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> labels;

    explicit Labels(std::vector<std::int32_t> of) : pixels(of.size()), labels(std::move(of)) {}
    [[nodiscard]] Images images() const { return {.pixels = pixels, .labels = labels, .pixels_per_image = 1}; }
};

/// Compares twelve steps of an optimizer with the reference. Each step has a new gradient.
template <class Rule>
void check_steps(const Rule& rule, double rate) {
    constexpr std::size_t count = 37;  // not a multiple of a vector's width
    RandomStream random(14, Purpose::test);
    const auto device = make_device();
    const Labels labels({0});
    const auto context = device->make_step_context(labels.images(), 1);
    // The check reads the change of each value in float. The values are small, so that their rounding error is below
    // step_tolerance, even for Adadelta's first change of about 1e-3.
    const Tensor start = normal_tensor(random, count, 0.05);
    std::vector<reference::OptimizedParameter> expected(count);
    const Buffer parameters = on_device(*device, start);
    const Buffer state_a = device->allocate(count);
    const Buffer state_b = device->allocate(count);
    for (std::size_t i = 0; i < count; ++i) {
        expected[i].value = start[i];
    }

    for (int number = 1; number <= 12; ++number) {
        const Tensor grads = normal_tensor(random, count, 0.1);
        const Buffer device_grads = on_device(*device, grads);
        context->fill(std::vector<std::int64_t>{0},
                      std::vector<StepScalars>{{.optimizer = rule.scalars(rate, number)}});
        begin_step(*device, *context, 1);
        const ParameterRange all{.begin = 0, .size = count};
        device->optimizer_step(*context, rule, std::span(&all, 1), parameters.data(), device_grads.data(),
                               rule.states() > 0 ? state_a.data() : nullptr,
                               rule.states() > 1 ? state_b.data() : nullptr);
        const std::vector<float> updated = from_device(*device, parameters);
        Tensor values;
        Tensor moved;
        for (std::size_t i = 0; i < count; ++i) {
            expected[i].update(rule, rate, number, grads[i]);
            values.push_back(expected[i].value - start[i]);
            moved.push_back(static_cast<double>(updated[i]) - start[i]);
        }
        CAPTURE(number);
        CHECK(difference(moved, values) < step_tolerance);
    }
}

/// The loss of one step over `classes`, added to `before`, and its gradient. Index −1 in `indices` is padding.
struct Loss {
    LossSums sums;
    std::vector<float> grad;
};
Loss loss_of(const std::vector<float>& logits, std::int64_t classes, const Labels& labels,
             const std::vector<std::int64_t>& indices, float grad_scale, const LossSums& before = {},
             float label_smoothing = 0) {
    const auto device = make_device();
    const auto context = device->make_step_context(labels.images(), static_cast<std::int64_t>(indices.size()));
    const Buffer device_logits = on_device(*device, logits);
    const Buffer grad = on_device(*device, std::vector<float>(logits.size(), 77));
    context->set_sums(before);
    context->fill(indices, std::vector<StepScalars>{{.grad_scale = grad_scale, .label_smoothing = label_smoothing}});
    begin_step(*device, *context, indices.size());
    device->softmax_cross_entropy(*context, device_logits.data(), classes, grad.data());
    device->synchronize();
    return {context->sums(), from_device(*device, grad)};
}

}  // namespace

TEST_CASE("sgd: plain, momentum, Nesterov and weight decay follow PyTorch's definition") {
    check_steps(Sgd{}, 0.1);
    check_steps(Sgd{.weight_decay = 0.01}, 0.1);
    check_steps(Sgd{.momentum = 0.9, .weight_decay = 0.01}, 0.1);
    check_steps(Sgd{.momentum = 0.9, .weight_decay = 0.01, .nesterov = true}, 0.1);
}

TEST_CASE("adam and adamw: follow PyTorch's definition with and without weight decay") {
    check_steps(Adam{}, 0.1);
    check_steps(Adam{.weight_decay = 0.1}, 0.1);
    check_steps(AdamW{.weight_decay = 0.1}, 0.1);
}

TEST_CASE("adadelta: follows PyTorch's definition with and without weight decay") {
    check_steps(Adadelta{}, 1);
    check_steps(Adadelta{.rho = 0.8, .weight_decay = 0.1}, 10);
}

TEST_CASE("softmax_cross_entropy: padding is ignored; loss and gradient of the other rows match the reference") {
    RandomStream random(15, Purpose::test);
    const Tensor logits = normal_tensor(random, 4 * 5, 3);
    const std::vector<std::int32_t> labels{4, 0, 2, 0};
    const std::vector<float> weights{1, 1, 1, 0};

    const Loss loss = loss_of(std::vector<float>(logits.begin(), logits.end()), 5, Labels(labels), {0, 1, 2, -1}, 0.25F,
                              {.loss = 2, .correct = 0, .samples = 10});

    Tensor expected = reference::cross_entropy_gradient(logits, labels, weights, 5);
    for (double& value : expected) {
        value *= 0.25;
    }
    CHECK(difference(loss.grad, expected) < step_tolerance);
    CHECK(loss.sums.loss == doctest::Approx(2 + reference::cross_entropy(logits, labels, weights, 5)).epsilon(1e-6));
    CHECK(loss.sums.samples == 13);
}

TEST_CASE("softmax_cross_entropy: loss and gradient with label smoothing match the reference") {
    RandomStream random(16, Purpose::test);
    for (const std::int64_t classes : {2, 5, 40}) {
        CAPTURE(classes);
        const Tensor logits = normal_tensor(random, static_cast<std::size_t>(3 * classes), 3);
        const std::vector<std::int32_t> labels{1, 0, 1};
        const std::vector<float> weights{1, 1, 0};
        const auto smoothing = static_cast<double>(0.1F);

        const Loss loss =
            loss_of(std::vector<float>(logits.begin(), logits.end()), classes, Labels(labels), {0, 1, -1}, 1, {}, 0.1F);

        CHECK(difference(loss.grad, reference::cross_entropy_gradient(logits, labels, weights, classes, smoothing)) <
              step_tolerance);
        CHECK(loss.sums.loss ==
              doctest::Approx(reference::cross_entropy(logits, labels, weights, classes, smoothing)).epsilon(1e-6));
    }
}

TEST_CASE("clip_norm: gradients above the norm are scaled down to it; smaller gradients keep their bits") {
    const auto device = make_device();
    const Buffer scratch = device->allocate(Device::clip_scratch);
    RandomStream random(17, Purpose::test);
    for (const std::size_t count : {1U, 7U, 4096U, 200003U}) {
        CAPTURE(count);
        const Tensor grads = normal_tensor(random, count);
        double norm = 0;
        for (const double value : grads) {
            norm += value * value;
        }
        norm = std::sqrt(norm);
        const Buffer clipped = on_device(*device, grads);
        device->clip_norm(clipped.data(), count, 2 * norm, scratch.data());
        CHECK(from_device(*device, clipped) == std::vector<float>(grads.begin(), grads.end()));

        device->clip_norm(clipped.data(), count, norm / 4, scratch.data());
        Tensor expected(grads);
        for (double& value : expected) {
            value *= norm / 4 / (norm + 1e-6);
        }
        CHECK(difference(from_device(*device, clipped), expected) < 1e-6);
    }
    const Buffer broken = on_device(*device, std::vector<float>{1, NAN, 2});
    device->clip_norm(broken.data(), 3, 1, scratch.data());
    CHECK(std::isnan(from_device(*device, broken)[0]));
}

TEST_CASE("average: moves the averages to the values by the step's share; share 1 copies, share 0 changes nothing") {
    const auto device = make_device();
    const Labels labels({0});
    const auto context = device->make_step_context(labels.images(), 1);
    RandomStream random(18, Purpose::test);
    for (const std::size_t count : {1U, 37U, 70001U}) {
        for (const float share : {0.001F, 0.25F, 0.5F, 0.75F, 1.0F, 0.0F}) {
            CAPTURE(count);
            CAPTURE(share);
            const Tensor values = normal_tensor(random, count);
            const Tensor before = normal_tensor(random, count, 5);
            const Buffer device_values = on_device(*device, values);
            const Buffer averages = on_device(*device, before);
            context->fill(std::vector<std::int64_t>{0}, std::vector<StepScalars>{{.average_share = share}});
            begin_step(*device, *context, 1);
            device->average(*context, device_values.data(), averages.data(), count);

            const std::vector<float> found = from_device(*device, averages);
            Tensor expected(count);
            for (std::size_t i = 0; i < count; ++i) {
                expected[i] = before[i] + static_cast<double>(share) * (values[i] - before[i]);
            }
            CHECK(difference(found, expected) < (share == 1 || share == 0 ? 1e-12 : 1e-6));
            CHECK(from_device(*device, device_values) == std::vector<float>(values.begin(), values.end()));
        }
    }
}

TEST_CASE("optimizer_step: with decay off it equals the optimizer without weight_decay") {
    const auto device = make_device();
    const auto moved = [&device]<class Rule>(const Rule& rule, bool decays) {
        const std::vector<std::int32_t> labels{0};
        const Labels of(labels);
        const auto context = device->make_step_context(of.images(), 1);
        context->fill(std::vector<std::int64_t>{0}, std::vector<StepScalars>{{.optimizer = rule.scalars(0.1, 1)}});
        begin_step(*device, *context, 1);
        const Buffer parameters = on_device(*device, std::vector<float>{1, -2, 3, -4, 5});
        const Buffer grads = on_device(*device, std::vector<float>{1, 2, -3, 0, 5});
        const Buffer a = device->allocate(5);
        const Buffer b = device->allocate(5);
        const ParameterRange all{.begin = 0, .size = 5, .decays = decays};
        device->optimizer_step(*context, rule, std::span(&all, 1), parameters.data(), grads.data(), a.data(), b.data());
        return from_device(*device, parameters);
    };
    CHECK(moved(Sgd{.momentum = 0.9, .weight_decay = 0.1}, false) == moved(Sgd{.momentum = 0.9}, true));
    CHECK(moved(Sgd{.momentum = 0.9, .weight_decay = 0.1}, true) != moved(Sgd{.momentum = 0.9}, true));
    CHECK(moved(AdamW{.weight_decay = 0.1}, false) == moved(AdamW{.weight_decay = 0}, true));
    CHECK(moved(Adadelta{.weight_decay = 0.1}, false) == moved(Adadelta{}, true));
}

TEST_CASE("optimizer_step: each range decays or not, also with many ranges of odd sizes, and the rest is unchanged") {
    const auto device = make_device();
    const Sgd rule{.momentum = 0.9, .weight_decay = 0.1};
    std::vector<ParameterRange> ranges;
    std::vector<bool> decays(3, false);  // of each parameter
    for (std::size_t i = 0; i < 150; ++i) {
        const std::size_t size = i == 7 ? 5000 : i % 11 + 1;
        ranges.push_back({.begin = decays.size(), .size = size, .decays = i % 2 == 0});
        decays.insert(decays.end(), size, i % 2 == 0);
    }
    const std::size_t count = decays.size() + 2;
    RandomStream random(17, Purpose::test);
    const Tensor start = normal_tensor(random, count);
    const Tensor grads = normal_tensor(random, count);
    const auto moved = [&](std::span<const ParameterRange> of) {
        const std::vector<std::int32_t> labels{0};
        const Labels images(labels);
        const auto context = device->make_step_context(images.images(), 1);
        context->fill(std::vector<std::int64_t>{0}, std::vector<StepScalars>{{.optimizer = rule.scalars(0.1, 1)}});
        begin_step(*device, *context, 1);
        const Buffer parameters = on_device(*device, start);
        const Buffer device_grads = on_device(*device, grads);
        const Buffer state = device->allocate(count);
        device->optimizer_step(*context, rule, of, parameters.data(), device_grads.data(), state.data(), nullptr);
        return from_device(*device, parameters);
    };
    const ParameterRange whole{.begin = 0, .size = count};
    const ParameterRange without{.begin = 0, .size = count, .decays = false};
    const std::vector<float> decayed = moved(std::span(&whole, 1));
    const std::vector<float> plain = moved(std::span(&without, 1));
    std::vector<float> expected(start.begin(), start.end());
    for (std::size_t i = 3; i < decays.size(); ++i) {
        expected[i] = decays[i] ? decayed[i] : plain[i];
    }

    CHECK(moved(ranges) == expected);
}

TEST_CASE("softmax_cross_entropy: a row is correct if its label has the largest logit; the gradient may be null") {
    const auto device = make_device();
    const Labels labels({1, 2});
    const auto context = device->make_step_context(labels.images(), 3);
    const Buffer logits = on_device(*device, std::vector<float>{0, 2, 1, 5, 4, 3, 0, 0, 9});

    context->fill(std::vector<std::int64_t>{0, 1, -1}, std::vector<StepScalars>(1));
    begin_step(*device, *context, 3);
    device->softmax_cross_entropy(*context, logits.data(), 3, nullptr);
    device->synchronize();

    CHECK(context->sums().correct == 1);
    CHECK(context->sums().samples == 2);
}

TEST_CASE("softmax_cross_entropy: logits of a thousand do not overflow") {
    const Loss loss = loss_of({1000, 0, -1000, 1000}, 2, Labels({1, 1}), {0, 1}, 1);

    CHECK(loss.sums.loss == doctest::Approx(1000));
    CHECK(difference(loss.grad, {1, -1, 0, 0}) < step_tolerance);
}

TEST_CASE("predictions: the class with the largest logit of each image of all steps, the first of equals") {
    const auto device = make_device();
    const Labels labels({0, 1, 2, 0, 1});
    const auto context = device->make_step_context(labels.images(), 2);
    const std::vector<Buffer> logits = [&] {
        std::vector<Buffer> all;
        all.push_back(on_device(*device, std::vector<float>{1, 3, 2, 4, 4, -1}));
        all.push_back(on_device(*device, std::vector<float>{-2, -1, 0, 5, 1, 1}));
        all.push_back(on_device(*device, std::vector<float>{-1, -3, -2, 9, 9, 9}));
        return all;
    }();
    context->fill(std::vector<std::int64_t>{0, 1, 2, 3, 4, -1}, std::vector<StepScalars>(3));

    for (const Buffer& step : logits) {
        begin_step(*device, *context, 2);
        device->softmax_cross_entropy(*context, step.data(), 3, nullptr);
    }
    device->synchronize();

    std::vector<std::int32_t> predictions = context->predictions();
    REQUIRE(predictions.size() == 6);
    predictions.pop_back();  // padding
    CHECK(predictions == std::vector<std::int32_t>{1, 0, 2, 0, 0});
}

TEST_CASE("softmax_cross_entropy: a NaN logit gives a NaN loss") {
    const Loss loss = loss_of({std::nanf(""), 1}, 2, Labels({1}), {0}, 1);

    CHECK(std::isnan(loss.sums.loss));
}

TEST_CASE("step context: each step uses its own images, labels and scale") {
    const auto device = make_device();
    const Labels labels({0, 1, 2});
    const auto context = device->make_step_context(labels.images(), 1);
    const Buffer logits = on_device(*device, std::vector<float>{0, 0, 0});
    const Buffer grad = device->allocate(3);

    context->fill(std::vector<std::int64_t>{2, 0}, std::vector<StepScalars>{{.grad_scale = 3}, {.grad_scale = 6}});
    begin_step(*device, *context, 1);
    device->softmax_cross_entropy(*context, logits.data(), 3, grad.data());
    const std::vector<float> first = from_device(*device, grad);
    begin_step(*device, *context, 1);
    device->softmax_cross_entropy(*context, logits.data(), 3, grad.data());
    const std::vector<float> second = from_device(*device, grad);

    CHECK(difference(first, {1, 1, -2}) < step_tolerance);
    CHECK(difference(second, {-4, 2, 2}) < step_tolerance);
    CHECK(context->sums().loss == doctest::Approx(2 * std::log(3.0)));
}

TEST_CASE("load_batch: pixels are scaled per channel, and an index of -1 gives zeros") {
    const auto device = make_device();
    // Two images of two pixels and three channels.
    const std::vector<std::uint8_t> pixels{0, 51, 102, 153, 204, 255, 255, 0, 51, 102, 153, 204};
    const std::vector<std::int32_t> labels{0, 0};
    const auto context = device->make_step_context({.pixels = pixels,
                                                    .labels = labels,
                                                    .pixels_per_image = 6,
                                                    .mean = {0, 0.2F, 0.4F},
                                                    .deviation = {1, 0.5F, 0.1F}},
                                                   3);
    const Buffer out = on_device(*device, std::vector<float>(18, 77));

    context->fill(std::vector<std::int64_t>{1, 0, -1}, std::vector<StepScalars>(1));
    device->next_step(*context);
    device->load_batch(*context, out.data());

    CHECK(difference(from_device(*device, out), {1, -0.4, -2, 0.4, 0.8, 4, 0, 0, 0, 0.6, 1.2, 6, 0, 0, 0, 0, 0, 0}) <
          1e-6);
}

TEST_CASE("load_batch: a single channel has the same mean and deviation for all pixels") {
    const auto device = make_device();
    const std::vector<std::uint8_t> pixels{0, 51, 255};
    const std::vector<std::int32_t> labels{0};
    const auto context = device->make_step_context(
        {.pixels = pixels, .labels = labels, .pixels_per_image = 3, .mean = {0.2F}, .deviation = {0.4F}}, 1);
    const Buffer out = device->allocate(3);

    context->fill(std::vector<std::int64_t>{0}, std::vector<StepScalars>(1));
    device->next_step(*context);
    device->load_batch(*context, out.data());

    CHECK(difference(from_device(*device, out), {-0.5, 0, 2}) < 1e-6);
}

TEST_CASE("capture: run(n) executes a captured step n times") {
    const auto device = make_device();
    const Labels labels({0});
    const auto context = device->make_step_context(labels.images(), 1);
    const Buffer logits = on_device(*device, std::vector<float>{0, 0});
    const Buffer pixel = device->allocate(1);
    const auto step = device->capture(
        [&] {
            device->next_step(*context);
            device->load_batch(*context, pixel.data());
            device->softmax_cross_entropy(*context, logits.data(), 2, nullptr);
        },
        CaptureAs::graph);

    std::int64_t done = 0;
    for (const std::int64_t wanted : {1, 2, 100, 3}) {
        const std::int64_t times = std::min(wanted, context->capacity());
        context->fill(std::vector<std::int64_t>(static_cast<std::size_t>(times), 0),
                      std::vector<StepScalars>(static_cast<std::size_t>(times)));
        step->run(times);
        device->synchronize();
        done += times;
    }

    CHECK(context->sums().samples == done);
    CHECK(step->seconds() > 0);
}
