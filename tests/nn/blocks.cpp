// Tests of batches that are computed as blocks of samples.
#include "finch/base/error.hpp"
#include "finch/base/random.hpp"
#include "finch/nn/initialization.hpp"
#include "finch/nn/model.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

using namespace finch;
using namespace finch::nn;
using backend::Activation;

namespace {

constexpr SampleShape image{12, 13, 2};
constexpr std::int64_t classes = 4;

/// Returns a model with all operations except batch normalisation, and with few weights.
ModelSpec many_operations() {
    const BlockLayer adds{.layers = {ConvLayer{.channels = 10, .kernel = 3}, LayerNormLayer{}},
                          .activation = Activation::tanh};
    const BlockLayer joins{.layers = {ConvLayer{.channels = 3, .kernel = 2, .activation = Activation::gelu}},
                           .join = Join::concatenate};
    return {ConvLayer{.channels = 10, .kernel = 3, .activation = Activation::relu},
            adds,
            DropoutLayer{.rate = 0.3},
            PoolLayer{},
            joins,
            PoolLayer{.kind = backend::Pooling::average, .kernel = 3, .stride = 1, .padding = 1},
            ConvLayer{.channels = 13, .kernel = 1, .stride = 2, .groups = 13},
            LayerNormLayer{.activation = Activation::silu},
            GlobalAveragePoolLayer{},
            LinearLayer{.units = 9, .activation = Activation::sigmoid},
            LinearLayer{}};
}

ModelPlan plan_of(std::int64_t batch, backend::Blocks blocks) {
    return plan_model(many_operations(), image, classes, batch, {}, blocks);
}

/// Returns the blocks of a device that has `samples` samples in a block.
backend::Blocks blocks_of(std::int64_t samples, std::int64_t replicas = 1) {
    return {.bytes = samples * plan_of(1, {}).activations * static_cast<std::int64_t>(sizeof(float)),
            .replicas = replicas};
}

/// The results of a training step and of a validation step.
struct Results {
    backend::LossSums training, validation;
    std::vector<float> logits, grads;
    std::vector<std::pair<std::int64_t, std::int64_t>> ready;
};

/// Computes a batch with `samples` samples; the others are padding.
Results results_of(const ModelPlan& plan, std::int64_t samples) {
    const auto device = backend::make_cpu_device(static_cast<int>(plan.replicas));
    Model model(*device, plan);
    model.set_state(initial_state(plan, 3, 1));
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(plan.batch * image.size()));
    std::vector<std::int32_t> labels(static_cast<std::size_t>(plan.batch));
    RandomStream random(5, Purpose::test);
    std::generate(pixels.begin(), pixels.end(), [&] { return static_cast<std::uint8_t>(random.below(256)); });
    std::generate(labels.begin(), labels.end(), [&] { return static_cast<std::int32_t>(random.below(classes)); });
    const auto context = device->make_step_context(
        {.pixels = pixels,
         .labels = labels,
         .pixels_per_image = image.size(),
         .mean = {0.4F, 0.5F},
         .deviation = {0.2F, 0.3F},
         .distortions = {.shift = 2, .mirrors = 1, .cutout = 3, .height = image.height, .width = image.width}},
        plan.batch);
    std::vector<std::int64_t> indices(labels.size(), -1);
    std::iota(indices.begin(), indices.begin() + samples, 0);
    const backend::StepScalars scalars{.grad_scale = 0.25F, .random_key = {1, 2}, .first_sample = 7};
    const auto add_losses = [&](backend::StepContext& step, const float* logits, float* grad) {
        device->softmax_cross_entropy(step, logits, classes, grad);
    };
    Results results;
    const auto begin_step = [&] {
        context->set_sums({});
        context->fill(indices, std::span(&scalars, 1));
        device->next_step(*context);
    };
    begin_step();
    model.compute_grads({.step = *context}, add_losses,
                        [&](std::int64_t begin, std::int64_t end) { results.ready.emplace_back(begin, end); });
    results.training = context->sums();
    results.grads.assign(model.grads().begin(), model.grads().end());
    begin_step();
    model.evaluate({.step = *context, .mode = backend::Mode::validation}, add_losses);
    results.validation = context->sums();
    results.logits.assign(model.logits(), model.logits() + samples * classes);
    return results;
}

/// Returns the largest difference, relative to the largest entry of `b`.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
    double most = 0;
    double largest = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
        largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    }
    return most / largest;
}

}  // namespace

TEST_CASE("blocks: losses, logits and gradients are those of the whole batch, with padding and with empty blocks") {
    for (const auto& [batch, samples] : {std::pair{64, 64}, {64, 61}, {64, 3}, {47, 47}, {47, 20}}) {
        CAPTURE(batch);
        CAPTURE(samples);
        const ModelPlan plan = plan_of(batch, blocks_of(3));
        REQUIRE(plan.block == (batch == 64 ? 4 : 3));

        const Results blocks = results_of(plan, samples);
        const Results whole = results_of(plan_of(batch, {}), samples);

        CHECK(blocks.training.samples == samples);
        CHECK(blocks.training.correct == whole.training.correct);
        CHECK(blocks.training.loss == doctest::Approx(whole.training.loss).epsilon(1e-6));
        CHECK(blocks.validation.samples == samples);
        CHECK(blocks.validation.loss == doctest::Approx(whole.validation.loss).epsilon(1e-6));
        CHECK(difference(blocks.logits, whole.logits) < 1e-5);
        CHECK(difference(blocks.grads, whole.grads) < 1e-5);
        CHECK(blocks.ready == whole.ready);
        CHECK(results_of(plan, samples).grads == blocks.grads);
    }
}

TEST_CASE("blocks: replicas on several threads give the gradients of the whole batch, the same bits each time") {
    for (const std::int64_t replicas : {2, 3})
        for (const auto& [batch, samples] : {std::pair{48, 48}, {64, 63}, {64, 7}, {47, 46}}) {
            CAPTURE(replicas);
            CAPTURE(batch);
            CAPTURE(samples);
            const ModelPlan plan = plan_of(batch, blocks_of(4, replicas));
            REQUIRE(plan.replicas == replicas);

            const Results blocks = results_of(plan, samples);
            const Results whole = results_of(plan_of(batch, {}), samples);

            CHECK(blocks.training.samples == samples);
            CHECK(blocks.training.loss == doctest::Approx(whole.training.loss).epsilon(1e-6));
            CHECK(blocks.validation.loss == doctest::Approx(whole.validation.loss).epsilon(1e-6));
            CHECK(difference(blocks.logits, whole.logits) < 1e-5);
            CHECK(difference(blocks.grads, whole.grads) < 1e-5);
            CHECK(blocks.ready == whole.ready);
            CHECK(results_of(plan, samples).grads == blocks.grads);
        }
}

TEST_CASE("blocks: an exception of a replica reaches the caller, and the next pass succeeds") {
    const auto device = backend::make_cpu_device(3);
    const ModelPlan plan = plan_of(48, blocks_of(4, 3));
    Model model(*device, plan);
    model.set_state(initial_state(plan, 3, 1));
    const std::vector<std::uint8_t> pixels(static_cast<std::size_t>(image.size()));
    const std::vector<std::int32_t> labels(1);
    const auto context =
        device->make_step_context({.pixels = pixels, .labels = labels, .pixels_per_image = image.size()}, plan.batch);
    const backend::StepScalars scalars{.grad_scale = 1};
    context->fill(std::vector<std::int64_t>(48), std::span(&scalars, 1));
    device->next_step(*context);
    const auto compute = [&](std::int64_t failing_row) {
        model.compute_grads(
            {.step = *context},
            [&](backend::StepContext& step, const float* logits, float* grad) {
                if (logits == model.logits() + failing_row * classes) {
                    throw Error("this block fails");
                }
                device->softmax_cross_entropy(step, logits, classes, grad);
            },
            [](std::int64_t, std::int64_t) {});
    };

    for (const std::int64_t block : {0, 1, 2, 5}) {
        CHECK_THROWS_WITH_AS(compute(block * plan.block), "this block fails", Error);
    }
    compute(-1);
    CHECK(context->sums().samples == 48);
}

TEST_CASE("blocks: the plan needs less memory than that of the whole batch") {
    const ModelPlan plan = plan_of(64, blocks_of(3));
    const ModelPlan whole = plan_of(64, {});

    CHECK(plan.batch == 64);
    CHECK(plan.block == 4);
    CHECK(plan.activations <= whole.activations / 2);
    CHECK(plan.bytes < whole.bytes);
    CHECK(whole.block == 64);
}

TEST_CASE("blocks: the bytes of a plan contain the activations in planes of every replica") {
    const auto device = backend::make_cpu_device(3);
    const ConvLayer layer{.channels = 10, .kernel = 3, .padding = 1, .activation = Activation::relu};
    const ModelSpec chain{layer, layer, GlobalAveragePoolLayer{}, LinearLayer{}};
    const ModelPlan plan = plan_model(chain, {28, 28, 1}, classes, 96, {}, {.bytes = 1, .replicas = 3});
    REQUIRE(plan.replicas == 3);

    const ModelPlan in_planes = with_layouts(*device, plan);

    REQUIRE(in_planes.activations != plan.activations);
    CHECK(in_planes.bytes - plan.bytes ==
          3 * (in_planes.activations - plan.activations) * static_cast<std::int64_t>(sizeof(float)));
}

TEST_CASE("blocks: larger with more bytes, at most half of the batch, and little of the last one is padding") {
    CHECK(plan_of(1024, blocks_of(32)).block == 32);
    CHECK(plan_of(1024, blocks_of(100)).block == 128);
    CHECK(plan_of(64, blocks_of(33)).block == 64);
    for (std::int64_t batch = 1; batch < 200; ++batch) {
        const ModelPlan plan = plan_of(batch, blocks_of(8));
        CHECK(plan.blocks() * plan.block - batch <= batch / 16);
    }
}

TEST_CASE("blocks: every replica has the same number of blocks, and no replica is idle if the weights are small") {
    for (const std::int64_t replicas : {2, 3, 8})
        for (std::int64_t batch = 24; batch < 200; ++batch) {
            CAPTURE(replicas);
            CAPTURE(batch);
            const ModelPlan plan = plan_of(batch, blocks_of(20, replicas));
            if (plan.replicas == 1) {
                CHECK(plan.block == batch);
            } else {
                CHECK(plan.replicas == replicas);
                CHECK((plan.blocks() + replicas - 1) / replicas * replicas * plan.block - batch <= batch / 16);
            }
        }
    CHECK(plan_of(64, blocks_of(20, 2)).block == 32);
    CHECK(plan_of(64, blocks_of(20, 8)).block == 8);
    CHECK(plan_of(256, blocks_of(20, 2)).block == 32);
}

TEST_CASE("blocks: batch normalisation needs the whole batch; large weights need large blocks") {
    const ModelSpec normalised{ConvLayer{}, BatchNormLayer{}, FlattenLayer{}, LinearLayer{}};
    CHECK(plan_model(normalised, image, classes, 64, {}, {.bytes = 1}).blocks() == 1);

    const ModelSpec heavy{FlattenLayer{}, LinearLayer{.units = 500}, LinearLayer{}};
    CHECK(plan_model(heavy, image, classes, 64, {}, {.bytes = 1}).blocks() == 1);
}
