#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "finch/nn/model.hpp"

#include "finch/base/error.hpp"
#include "finch/base/random.hpp"
#include "finch/nn/initialization.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <numeric>
#include <utility>
#include <vector>

using namespace finch;
using namespace finch::nn;
using backend::Activation;
using backend::Pooling;

namespace {

constexpr std::int64_t batch = 6;
constexpr std::int64_t classes = 5;

/// Every kind of layer, odd sizes; a pool stands before the first layer that learns.
ModelPlan every_layer(Activation activation) {
    return plan_model(
        {PoolLayer{.kind = Pooling::average, .kernel = 2, .stride = 1},
         ConvLayer{.channels = 7, .kernel = 3, .activation = activation},
         PoolLayer{.kind = Pooling::max, .kernel = 3, .stride = 2, .padding = 1},
         ConvLayer{.channels = 5, .kernel = 2, .activation = Activation::none}, ActivationLayer{Activation::tanh},
         FlattenLayer{}, LinearLayer{.units = 11, .activation = activation}, LinearLayer{}},
        {12, 10, 3}, classes, batch);
}

struct Trial {
    explicit Trial(ModelPlan plan) : model(*device, std::move(plan)) {
        RandomStream random(7, Purpose::test);
        input.resize(static_cast<std::size_t>(batch * model.plan().input.size()));
        for (float& value : input) {
            value = static_cast<float>(random.normal());
        }
        for (std::int64_t i = 0; i < batch; ++i) {
            labels.push_back(static_cast<std::int32_t>(random.below(classes)));
        }
        state = initial_state(model.plan(), 1, 1);
        arena = state.parameters;
        set(arena);
    }

    void set(std::span<const float> parameters) {
        state.parameters.assign(parameters.begin(), parameters.end());
        model.set_state(state);
    }

    /// The mean loss; with `backward` the gradients are made too.
    double loss(bool backward = false) {
        std::vector<std::int64_t> indices(batch);
        std::iota(indices.begin(), indices.end(), 0);
        const std::vector<std::uint8_t> pixels(batch);
        const auto step = device->make_step_context({.pixels = pixels, .labels = labels, .pixels_per_image = 1}, batch);
        step->fill(indices, std::vector<backend::StepScalars>{{.grad_scale = 1.0F / batch, .random_key = {1, 2}}});
        const backend::Pass pass{.step = *step};
        device->next_step(*step);
        device->upload(input, model.input());
        model.forward(pass);
        device->softmax_cross_entropy(*step, model.logits(), classes, backward ? model.grad_logits() : nullptr);
        device->synchronize();
        if (backward) {
            model.backward(pass, [&](std::int64_t begin, std::int64_t end) { ranges.emplace_back(begin, end); });
        }
        return step->sums().loss / static_cast<double>(batch);
    }

    std::vector<float> grads() {
        std::vector<float> result(arena.size());
        device->download(model.grads().data(), result);
        return result;
    }

    std::unique_ptr<backend::Device> device = backend::make_cpu_device(1);
    Model model;
    std::vector<std::int32_t> labels;
    std::vector<float> input;
    ModelState state;
    std::vector<float> arena;
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
};

}  // namespace

TEST_CASE("backward: the ready ranges come in the arena's order and cover it without a gap") {
    Trial trial(every_layer(Activation::relu));

    (void)trial.loss(true);

    REQUIRE(trial.ranges.size() == 4);
    std::int64_t at = 0;
    for (const auto& [begin, end] : trial.ranges) {
        CHECK(begin == at);
        CHECK(end > begin);
        at = end;
    }
    CHECK(at == trial.model.plan().parameters);
}

TEST_CASE("backward: every tensor's gradient is the loss's slope by finite differences") {
    for (const Activation activation : {Activation::relu, Activation::sigmoid, Activation::tanh}) {
        Trial trial(every_layer(activation));
        (void)trial.loss(true);
        const auto grads = trial.grads();
        for (const TensorInfo& tensor : trial.model.plan().tensors) {
            CAPTURE(tensor.name);
            // Along the signs of the tensor's own gradient, where the slope is largest.
            constexpr double step = 2e-4;
            std::vector<float> above = trial.arena;
            std::vector<float> below = trial.arena;
            double slope = 0;
            for (auto i = static_cast<std::size_t>(tensor.offset);
                 i < static_cast<std::size_t>(tensor.offset + tensor.size); ++i) {
                const auto direction = static_cast<float>(std::copysign(step, static_cast<double>(grads[i])));
                above[i] += direction;
                below[i] -= direction;
                slope += std::abs(static_cast<double>(grads[i]));
            }

            trial.set(above);
            const double loss_above = trial.loss();
            trial.set(below);
            const double loss_below = trial.loss();

            CHECK(slope > 0);
            CHECK((loss_above - loss_below) / (2 * step) == doctest::Approx(slope).epsilon(0.02));
        }
    }
}

TEST_CASE("tensors: what name_tensors() gives, read_tensors() takes back to the same bits") {
    Trial trial(every_layer(Activation::relu));
    const NamedArrays tensors = name_tensors(trial.model.plan(), trial.model.state());
    const double loss = trial.loss();
    trial.set(std::vector<float>(trial.arena.size()));
    CHECK(trial.loss() != loss);

    trial.model.set_state(read_tensors(trial.model.plan(), tensors));

    CHECK(trial.loss() == loss);
    CHECK(tensors.size() == 8);
    CHECK(tensors[0].name == "1.weight");
    CHECK(tensors[0].shape == std::vector<std::int64_t>{7, 3, 3, 3});
}

TEST_CASE("tensors: a missing tensor and a wrong shape are refused by name") {
    Trial trial(every_layer(Activation::relu));
    NamedArrays tensors = name_tensors(trial.model.plan(), trial.model.state());
    tensors[0].shape = {3, 7, 3, 3};

    CHECK_THROWS_WITH_AS((void)read_tensors(trial.model.plan(), tensors), doctest::Contains("1.weight"), FileError);
    tensors.erase(tensors.begin());
    CHECK_THROWS_AS((void)read_tensors(trial.model.plan(), tensors), FileError);
}
