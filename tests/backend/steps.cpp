#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "finch/backend/device.hpp"
#include "finch/backend/optimizer_step.hpp"

#include "backend/tensors.hpp"

#include <cmath>
#include <doctest/doctest.h>

using namespace finch;
using namespace finch::backend;
using reference::Tensor;

namespace {

constexpr double tolerance = 1e-5;  ///< of each tensor's largest entry

/// Twelve steps from the same start, each with a new gradient. `advance(step, number)` sets what changes from step to
/// step; the first is 1.
template <class Step, class Advance>
void check_steps(Step step, Advance advance) {
    constexpr std::size_t count = 37;  // no multiple of a vector's width
    RandomStream random(14, Purpose::test);
    const auto device = make_cpu_device(1);
    // Small, so that float holds what a step of Adadelta's first size (1e-3) adds to it to better than the tolerance.
    const Tensor start = normal_tensor(random, count, 0.05);
    std::vector<reference::OptimizedParameter> expected(count);
    std::vector<float> parameters(start.begin(), start.end());
    std::vector<float> state_a(count);
    std::vector<float> state_b(count);
    for (std::size_t i = 0; i < count; ++i) {
        expected[i].value = start[i];
    }

    for (int number = 1; number <= 12; ++number) {
        advance(step, number);
        const Tensor grads = normal_tensor(random, count, 0.1);
        const std::vector<float> grads_in_float(grads.begin(), grads.end());
        device->optimizer_step(step, parameters.data(), grads_in_float.data(), state_a.data(), state_b.data(), count);
        Tensor values;
        for (std::size_t i = 0; i < count; ++i) {
            expected[i].update(step, grads[i]);
            values.push_back(expected[i].value - start[i]);
        }
        Tensor moved(parameters.begin(), parameters.end());
        for (std::size_t i = 0; i < count; ++i) {
            moved[i] -= start[i];
        }
        CAPTURE(number);
        CHECK(difference(moved, values) < tolerance);
    }
}

constexpr auto nothing = [](auto&, int) {};

}  // namespace

TEST_CASE("sgd: plain, momentum, Nesterov and decay follow PyTorch's definition") {
    const auto first = [](SgdStep& step, int number) { step.first = number == 1; };

    check_steps(SgdStep{.learning_rate = 0.1F}, first);
    check_steps(SgdStep{.learning_rate = 0.1F, .weight_decay = 0.01F}, first);
    check_steps(SgdStep{.learning_rate = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F}, first);
    check_steps(SgdStep{.learning_rate = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F, .nesterov = true}, first);
}

TEST_CASE("adam and adamw: with and without decay they follow PyTorch's definition") {
    const auto count = [](AdamStep& step, int number) { step.step = number; };

    check_steps(AdamStep{.learning_rate = 0.1F}, count);
    check_steps(AdamStep{.learning_rate = 0.1F, .weight_decay = 0.1F}, count);
    check_steps(AdamStep{.learning_rate = 0.1F, .weight_decay = 0.1F, .decoupled = true}, count);
}

TEST_CASE("adadelta: with and without decay it follows PyTorch's definition") {
    check_steps(AdadeltaStep{.learning_rate = 1}, nothing);
    check_steps(AdadeltaStep{.learning_rate = 10, .rho = 0.8F, .weight_decay = 0.1F}, nothing);
}

TEST_CASE("softmax_cross_entropy: rows of weight 0 count nowhere, the others as the reference says") {
    const auto device = make_cpu_device(1);
    RandomStream random(15, Purpose::test);
    const Tensor logits = normal_tensor(random, 4 * 5, 3);
    const std::vector<float> in_float(logits.begin(), logits.end());
    const std::vector<std::int32_t> labels{4, 0, 2, 0};
    const std::vector<float> weights{1, 1, 1, 0};
    std::vector<float> grad(logits.size(), 77);
    LossSums sums{.loss = 2, .correct = 0, .samples = 10};

    device->softmax_cross_entropy(in_float.data(), labels, weights, 5, 0.25F, grad.data(), sums);

    Tensor expected = reference::cross_entropy_gradient(logits, labels, weights, 5);
    for (double& value : expected) {
        value *= 0.25;
    }
    CHECK(difference(grad, expected) < tolerance);
    CHECK(sums.loss == doctest::Approx(2 + reference::cross_entropy(logits, labels, weights, 5)).epsilon(1e-6));
    CHECK(sums.samples == 13);
}

TEST_CASE("softmax_cross_entropy: a row is correct where its label has the largest logit; no gradient is needed") {
    const auto device = make_cpu_device(1);
    const std::vector<float> logits{0, 2, 1, 5, 4, 3, 0, 0, 9};
    LossSums sums;

    device->softmax_cross_entropy(logits.data(), std::vector<std::int32_t>{1, 2, 2}, std::vector<float>{1, 1, 0}, 3, 1,
                                  nullptr, sums);

    CHECK(sums.correct == 1);
    CHECK(sums.samples == 2);
}

TEST_CASE("softmax_cross_entropy: logits of a thousand do not overflow") {
    const auto device = make_cpu_device(1);
    const std::vector<float> logits{1000, 0, -1000, 1000};
    std::vector<float> grad(4);
    LossSums sums;

    device->softmax_cross_entropy(logits.data(), std::vector<std::int32_t>{1, 1}, std::vector<float>{1, 1}, 2, 1,
                                  grad.data(), sums);

    CHECK(sums.loss == doctest::Approx(1000));
    CHECK(difference(grad, {1, -1, 0, 0}) < tolerance);
}

TEST_CASE("softmax_cross_entropy: a logit that is not a number gives such a loss") {
    const auto device = make_cpu_device(1);
    const std::vector<float> logits{std::nanf(""), 1};
    LossSums sums;

    device->softmax_cross_entropy(logits.data(), std::vector<std::int32_t>{1}, std::vector<float>{1}, 2, 1, nullptr,
                                  sums);

    CHECK(std::isnan(sums.loss));
}

TEST_CASE("gather_normalised: pixels are scaled per channel, and an index of -1 gives zeros") {
    const auto device = make_cpu_device(1);
    // Two images of two pixels with three channels.
    const std::vector<std::uint8_t> pixels{0, 51, 102, 153, 204, 255, 255, 0, 51, 102, 153, 204};
    std::vector<float> out(18, 77);

    device->gather_normalised(pixels, 6, std::vector<std::int64_t>{1, -1, 0}, std::vector<float>{0, 0.2F, 0.4F},
                              std::vector<float>{1, 0.5F, 0.1F}, out.data());

    CHECK(difference(out, {1, -0.4, -2, 0.4, 0.8, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.6, 1.2, 6}) < 1e-6);
}

TEST_CASE("gather_normalised: one channel has one mean and deviation for all pixels") {
    const auto device = make_cpu_device(1);
    std::vector<float> out(3, 77);

    device->gather_normalised(std::vector<std::uint8_t>{0, 51, 255}, 3, std::vector<std::int64_t>{0},
                              std::vector<float>{0.2F}, std::vector<float>{0.4F}, out.data());

    CHECK(difference(out, {-0.5, 0, 2}) < 1e-6);
}
