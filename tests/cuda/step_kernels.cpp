// Tests of the kernels of a training step outside of layers: steps, images, loss and optimizer.
#include "backend/tensors.hpp"
#include "cuda/device_array.hpp"
#include "steps.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace finch;
using namespace finch::backend;
using namespace finch::backend::cuda;
using finch::test::DeviceArray;
using finch::test::same_in_every_order;
using reference::Tensor;

namespace {

constexpr double tolerance = 1e-5;  ///< relative to each tensor's largest entry

/// Compares twelve steps of an optimizer with the same rule on the host. Each array starts after `ahead` floats.
template <class Rule>
void check_steps(const Rule& rule, std::size_t count, std::size_t ahead) {
    RandomStream random(14, Purpose::test, count);
    const UniqueStream stream = make_stream();
    const Tensor start = normal_tensor(random, count, 0.05);
    std::vector<float> expected(start.begin(), start.end());
    std::vector<float> a(count);
    std::vector<float> b(count);
    const DeviceArray parameters(expected, ahead);
    const DeviceArray state_a(a, ahead);
    const DeviceArray state_b(b, ahead);
    const auto state_or_null = [&](int number, const DeviceArray<float>& state) {
        return number <= rule.states() ? state.data() : nullptr;
    };

    for (int number = 1; number <= 12; ++number) {
        const OptimizerScalars scalars = rule.scalars(0.1, number);
        const Tensor grads = normal_tensor(random, count, 0.1);
        const DeviceArray device_grads(std::vector<float>(grads.begin(), grads.end()), ahead);
        const DeviceArray state(std::vector<StepState>{{.current = {.optimizer = scalars}}});
        const ParameterRange all{.begin = 0, .size = count};
        launch_optimizer_step(stream.get(), rule, std::span(&all, 1), state.data(), parameters.data(),
                              device_grads.data(), state_or_null(1, state_a), state_or_null(2, state_b));
        for (std::size_t i = 0; i < count; ++i) {
            Rule::update(scalars, static_cast<float>(grads[i]), expected[i], a[i], b[i]);
        }
        CAPTURE(number);
        CHECK(difference(parameters.values(), Tensor(expected.begin(), expected.end())) < 1e-6);
    }
}

/// A batch of logits, and a function that computes its loss. Labels vary; every seventh sample is padding.
struct LossTrial {
    std::int64_t batch;
    std::int64_t classes;
    std::vector<float> logits;
    std::vector<std::int32_t> labels;   ///< of the whole data set
    std::vector<std::int64_t> indices;  ///< of one batch
    float grad_scale = 0.25F;

    LossTrial(std::int64_t of_batch, std::int64_t of_classes) : batch(of_batch), classes(of_classes) {
        RandomStream random(15, Purpose::test, static_cast<std::uint64_t>(batch * classes));
        const Tensor values = normal_tensor(random, static_cast<std::size_t>(batch * classes), 3);
        logits.assign(values.begin(), values.end());
        for (std::int64_t n = 0; n < batch; ++n) {
            labels.push_back(static_cast<std::int32_t>((n * n + 1) % classes));
            indices.push_back(n % 7 == 5 ? -1 : batch - 1 - n);
        }
    }

    struct Result {
        StepState state;
        std::vector<float> grad;
        bool operator==(const Result& other) const {
            return state.sums.loss == other.state.sums.loss && state.sums.correct == other.state.sums.correct &&
                   state.sums.samples == other.state.sums.samples && grad == other.grad;
        }
    };
    /// Computes the loss in the second of three steps. The sums before the step are 2, 1 and 10. The indices of the
    /// other steps are invalid.
    [[nodiscard]] Result run() const {
        const UniqueStream stream = make_stream();
        std::vector<std::int64_t> all(static_cast<std::size_t>(3 * batch), 1 << 30);
        std::copy(indices.begin(), indices.end(), all.begin() + batch);
        const DeviceArray device_indices(all);
        const DeviceArray device_labels(labels);
        const DeviceArray state(std::vector<StepState>{
            {.row = 1, .current = {.grad_scale = grad_scale}, .sums = {.loss = 2, .correct = 1, .samples = 10}}});
        const DeviceArray device_logits(logits);
        const DeviceArray grad(std::vector<float>(logits.size(), 77));
        const DeviceArray predictions(std::vector<std::int32_t>(all.size(), -1));
        const StepView view{.indices = device_indices.data(),
                            .predictions = predictions.data(),
                            .state = state.data(),
                            .answers = device_labels.data(),
                            .batch = batch};
        launch_softmax_cross_entropy(stream.get(), view, device_logits.data(), classes, grad.data());
        return {state.values().front(), grad.values()};
    }
};

/// Returns the images of `indices`, loaded in the second of two steps.
std::vector<float> loaded(const std::vector<std::uint8_t>& pixels, std::int64_t per_image,
                          const std::vector<float>& mean, const std::vector<float>& deviation,
                          const std::vector<std::int64_t>& indices, std::size_t ahead) {
    const UniqueStream stream = make_stream();
    std::vector<std::int64_t> all(indices.size(), 1 << 30);
    all.insert(all.end(), indices.begin(), indices.end());
    const DeviceArray device_indices(all);
    const DeviceArray device_pixels(pixels);
    const DeviceArray device_mean(mean);
    const DeviceArray device_deviation(deviation);
    const DeviceArray state(std::vector<StepState>{{.row = 1}});
    const DeviceArray rows(std::vector<StepRow>(2));
    const DeviceArray out(std::vector<float>(indices.size() * static_cast<std::size_t>(per_image) + 1, 77), ahead);
    launch_load_batch(stream.get(),
                      {.rows = rows.data(),
                       .indices = device_indices.data(),
                       .state = state.data(),
                       .pixels = device_pixels.data(),
                       .mean = device_mean.data(),
                       .deviation = device_deviation.data(),
                       .pixels_per_image = per_image,
                       .channels = static_cast<std::int64_t>(mean.size()),
                       .batch = static_cast<std::int64_t>(indices.size())},
                      out.data());
    return out.values();
}

}  // namespace

TEST_CASE("steps: load_batch copies the row to `current`, and the loss increments the row's index") {
    const UniqueStream stream = make_stream();
    const DeviceArray rows(std::vector<StepRow>{{.grad_scale = 1}, {.grad_scale = 2, .samples = 7}, {.grad_scale = 3}});
    const DeviceArray state(std::vector<StepState>{{.sums = {.correct = 4}, .loss_scale = {.scale = 8}}});
    const DeviceArray images(std::vector<std::int64_t>(3, -1));
    const DeviceArray out(std::vector<float>(1));
    StepView view{
        .rows = rows.data(), .indices = images.data(), .state = state.data(), .pixels_per_image = 1, .batch = 1};
    for (std::int64_t row = 0; row < 3; ++row) {
        view.float_pixels = row == 1 ? 1 : 0;  // another kernel
        launch_load_batch(stream.get(), view, out.data());
        CHECK(state.values().front().current.grad_scale == 8.0F * static_cast<float>(row + 1));
        CHECK(state.values().front().current.samples == (row == 1 ? 7 : 0));
        CHECK(state.values().front().row == row);
        launch_regression_loss(stream.get(), view, Regression::squared, out.data(), 1, nullptr);
        CHECK(state.values().front().row == row + 1);
    }
    CHECK(state.values().front().sums.correct == 4);
}

TEST_CASE("optimizers: follow the rule at any length and alignment") {
    const auto check = [](const auto& rule) {
        for (const std::size_t count : {1, 4, 37, 1030})
            for (const std::size_t ahead : {0, 1}) {
                CAPTURE(count);
                CAPTURE(ahead);
                check_steps(rule, count, ahead);
            }
    };
    check(Sgd{.weight_decay = 0.01});
    check(Sgd{.momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
    check(Adam{.weight_decay = 0.1});
    check(AdamW{.weight_decay = 0.1});
    check(Adadelta{.weight_decay = 0.1});
}

TEST_CASE("softmax_cross_entropy: any batch size and number of classes give the reference's loss and gradient") {
    for (const auto& [batch, classes] :
         {std::pair{1, 2}, {8, 10}, {6, 1}, {32, 32}, {33, 10}, {70, 5}, {300, 3}, {5, 33}, {20, 700}}) {
        CAPTURE(batch);
        CAPTURE(classes);
        const LossTrial trial(batch, classes);
        std::vector<std::int32_t> labels;
        std::vector<float> weights;
        std::int64_t correct = 1;
        for (std::int64_t n = 0; n < batch; ++n) {
            const std::int64_t index = trial.indices.at(static_cast<std::size_t>(n));
            labels.push_back(index < 0 ? 0 : trial.labels.at(static_cast<std::size_t>(index)));
            weights.push_back(index < 0 ? 0.0F : 1.0F);
            const auto row = trial.logits.begin() + n * classes;
            correct += index >= 0 && std::max_element(row, row + classes) - row == labels.back() ? 1 : 0;
        }
        const Tensor logits(trial.logits.begin(), trial.logits.end());
        Tensor gradient = reference::cross_entropy_gradient(logits, labels, weights, classes);
        for (double& value : gradient) {
            value *= 0.25;
        }

        const LossTrial::Result result = trial.run();

        CHECK(difference(result.grad, gradient) < (classes == 1 ? 1e-12 : tolerance));
        CHECK(result.state.sums.loss ==
              doctest::Approx(2 + reference::cross_entropy(logits, labels, weights, classes)).epsilon(1e-9));
        CHECK(result.state.sums.correct == correct);
        CHECK(result.state.sums.samples == 10 + std::count(weights.begin(), weights.end(), 1.0F));
    }
}

TEST_CASE("softmax_cross_entropy: the order of threads changes no bit") {
    for (const auto& [batch, classes] : {std::pair{8, 10}, {150, 10}, {9, 100}}) {
        CHECK(same_in_every_order([&] { return LossTrial(batch, classes).run(); }));
    }
}

TEST_CASE("softmax_cross_entropy: the first of equal largest logits is the prediction") {
    for (const std::int64_t classes : {3, 20, 50}) {
        CAPTURE(classes);
        LossTrial trial(4, classes);
        trial.indices = {0, 1, 2, 3};
        trial.labels = {0, 1, static_cast<std::int32_t>(classes - 1), 1};
        std::fill(trial.logits.begin(), trial.logits.end(), 0.5F);
        trial.logits[static_cast<std::size_t>(3 * classes + 1)] = 2;  // sample 3: class 1 and the last class
        trial.logits[static_cast<std::size_t>(4 * classes - 1)] = 2;

        CHECK(trial.run().state.sums.correct == 1 + 2);  // samples 0 and 3 are correct
    }
}

TEST_CASE("softmax_cross_entropy: a NaN logit makes the loss NaN, and the gradient of its own sample only") {
    for (const std::int64_t place : {0, 1, 7}) {
        CAPTURE(place);
        LossTrial trial(3, 9);
        trial.indices = {0, 1, 2};
        trial.logits[static_cast<std::size_t>(9 + place)] = std::nanf("");

        const LossTrial::Result result = trial.run();

        CHECK(std::isnan(result.state.sums.loss));
        CHECK(std::isnan(result.grad.at(9)));
        CHECK(std::isfinite(result.grad.at(8)));
        CHECK(std::isfinite(result.grad.at(18)));
    }
}

TEST_CASE("softmax_cross_entropy: padding is ignored, even if it is NaN") {
    LossTrial trial(3, 9);
    trial.indices = {0, -1, 2};
    std::fill_n(trial.logits.begin() + 9, 9, std::nanf(""));

    const LossTrial::Result result = trial.run();

    CHECK(std::isfinite(result.state.sums.loss));
    CHECK(result.state.sums.samples == 12);
    CHECK(std::vector(result.grad.begin() + 9, result.grad.begin() + 18) == std::vector<float>(9));
}

TEST_CASE("softmax_cross_entropy: logits of a thousand do not overflow") {
    LossTrial trial(2, 2);
    trial.indices = {0, 1};
    trial.labels = {1, 1};
    trial.logits = {1000, 0, -1000, 1000};
    trial.grad_scale = 1;

    const LossTrial::Result result = trial.run();

    CHECK(result.state.sums.loss == doctest::Approx(1002));
    CHECK(difference(result.grad, {1, -1, 0, 0}) < tolerance);
}

TEST_CASE("load_batch: pixels are scaled per channel at any size and alignment; padding becomes 0") {
    const std::vector<std::int64_t> indices{2, -1, 0, 1, 2};
    for (const auto& [per_image, channels] : {std::pair{8, 1}, {7, 1}, {12, 3}, {9, 3}, {2500, 1}, {3 * 40 * 31, 3}})
        for (const std::size_t ahead : {0, 1}) {
            CAPTURE(per_image);
            CAPTURE(channels);
            const auto size = static_cast<std::size_t>(per_image);
            std::vector<std::uint8_t> pixels;
            for (std::size_t i = 0; i < 3 * size; ++i) {
                pixels.push_back(static_cast<std::uint8_t>((i * i + 3 * i) % 256));
            }
            const std::vector<float> mean = channels == 1 ? std::vector{0.2F} : std::vector{0.1F, 0.2F, 0.4F};
            const std::vector<float> deviation = channels == 1 ? std::vector{0.5F} : std::vector{1.0F, 0.5F, 0.1F};
            Tensor expected;
            for (const std::int64_t index : indices) {
                for (std::size_t i = 0; i < size; ++i) {
                    const std::size_t c = i % mean.size();
                    const double pixel = index < 0 ? 0 : pixels[static_cast<std::size_t>(index) * size + i];
                    expected.push_back(index < 0 ? 0
                                                 : (pixel / 255 - static_cast<double>(mean[c])) /
                                                       static_cast<double>(deviation[c]));
                }
            }
            expected.push_back(77);  // element after the last image

            const std::vector<float> values = loaded(pixels, per_image, mean, deviation, indices, ahead);

            CHECK(values.back() == 77);
            double apart = 0;
            for (std::size_t i = 0; i < expected.size(); ++i) {
                apart = std::max(apart, std::abs(static_cast<double>(values[i]) - expected[i]));
            }
            CHECK(apart < 1e-6 * 9);  // relative to the largest value
        }
}
