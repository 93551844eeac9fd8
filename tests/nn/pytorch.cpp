// Compares the tutorial's network and the optimizers with values from PyTorch (tools/fixtures/pytorch_fixtures.py).
#include "finch/nn/model.hpp"
#include "finch/nn/optimizer.hpp"

#include "fixtures.hpp"
#include "formula.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <numeric>
#include <vector>

using namespace finch;
using namespace finch::nn;
using backend::Activation;
using test::Fixture;
using test::Stream;

namespace {

constexpr std::int64_t batch = test::fixture_batch;
constexpr std::uint64_t states = 100;
constexpr std::uint64_t free_steps = 1U << 20U;  ///< the state at the start of the training of 100 free steps

ModelPlan tutorial(std::int64_t convolutions, Activation activation) {
    return plan_model({ConvLayer{.channels = 10, .kernel = 3, .activation = activation, .repeat = convolutions},
                       FlattenLayer{}, LinearLayer{}},
                      {28, 28, 1}, 10, batch);
}

Activation activation_of(std::uint64_t state) {
    constexpr std::array kinds{Activation::relu, Activation::relu, Activation::tanh, Activation::sigmoid};
    return kinds[state % kinds.size()];
}

double gain_of(std::uint64_t state) {
    return 1 + static_cast<double>(state % 10) * 0.2;
}

class Network {
public:
    Network(std::int64_t convolutions, Activation activation) : model_(*device_, tutorial(convolutions, activation)) {}

    void set_weights(std::uint64_t state, double gain) {
        std::vector<float> arena(static_cast<std::size_t>(model_.plan().parameters));
        for (std::uint64_t index = 0; index < model_.plan().tensors.size(); ++index) {
            const TensorInfo& tensor = model_.plan().tensors[index];
            const auto scale = static_cast<float>(gain / std::sqrt(static_cast<double>(tensor.fan_in)));
            for (std::int64_t i = 0; i < tensor.size; ++i) {
                arena[static_cast<std::size_t>(tensor.offset + i)] =
                    test::uniform(Stream::weight, state, index, static_cast<std::uint64_t>(i)) * scale;
            }
        }
        model_.set_state({.parameters = std::move(arena), .buffers = {}});
    }

    /// Computes the loss of a state's batch. Afterwards model().grads() has the gradients, and step() has the
    /// optimizer's scalars.
    double loss_and_grads(std::uint64_t state, const backend::OptimizerScalars& optimizer = {}) {
        const test::FixtureImages images(state, false);
        std::vector<std::int64_t> indices(batch);
        std::iota(indices.begin(), indices.end(), 0);
        step_ = device_->make_step_context(images.images(), batch);
        const backend::StepScalars scalars{.grad_scale = 1.0F / batch, .optimizer = optimizer};
        step_->fill(indices, std::span(&scalars, 1));
        const backend::Pass pass{.step = *step_};
        device_->next_step(pass.step);
        device_->load_batch(pass.step, model_.input());
        model_.forward(pass);
        device_->softmax_cross_entropy(pass.step, model_.logits(), 10, model_.grad_logits());
        model_.backward(pass, [](std::int64_t /*begin*/, std::int64_t /*end*/) {});
        device_->synchronize();
        return step_->sums().loss / batch;
    }

    std::vector<float> grads() {
        std::vector<float> arena(static_cast<std::size_t>(model_.plan().parameters));
        device_->download(model_.grads().data(), arena);
        return arena;
    }

    Model& model() { return model_; }
    backend::Device& device() { return *device_; }
    /// Returns the step context of the last loss_and_grads().
    backend::StepContext& step() { return *step_; }

private:
    std::unique_ptr<backend::Device> device_ = backend::make_cpu_device(1);
    Model model_;
    std::unique_ptr<backend::StepContext> step_;
};

/// `tolerance` is a share of the tensor's largest entry.
void check_states(std::int64_t convolutions, const std::string& file, double tolerance) {
    Fixture fixture(file);
    std::vector<std::unique_ptr<Network>> networks(4);
    double worst = 0;
    for (std::uint64_t number = 0; number < states; ++number) {
        const auto state = static_cast<std::uint64_t>(fixture.next<double>());
        CAPTURE(state);
        auto& network = networks[static_cast<std::size_t>(activation_of(state))];
        if (!network) {
            network = std::make_unique<Network>(convolutions, activation_of(state));
        }
        network->set_weights(state, gain_of(state));
        const double loss = network->loss_and_grads(state);
        CHECK(loss == doctest::Approx(fixture.next<double>()).epsilon(1e-5));
        const auto arena = network->grads();
        for (std::uint64_t index = 0; index < network->model().plan().tensors.size(); ++index) {
            const TensorInfo& tensor = network->model().plan().tensors[index];
            CAPTURE(tensor.name);
            const auto difference = test::compare(fixture, 64, index,
                                                  std::span(arena).subspan(static_cast<std::size_t>(tensor.offset),
                                                                           static_cast<std::size_t>(tensor.size)));
            CHECK(difference.maximum < tolerance);
            CHECK(difference.sampled < tolerance);
            CHECK(difference.projection < tolerance);
            worst = std::max({worst, difference.maximum, difference.sampled, difference.projection});
        }
    }
    MESSAGE("largest difference, in shares of a tensor's largest entry: " << worst);
}

void check_losses(std::int64_t convolutions, const std::string& file) {
    Fixture fixture(file);
    Network network(convolutions, Activation::relu);
    const std::array<std::pair<backend::Optimizer, double>, 2> runs{
        std::pair{backend::Optimizer{backend::Adadelta{}}, 0.01}, std::pair{backend::Optimizer{backend::Sgd{}}, 0.001}};
    double worst = 0;
    for (const auto& [options, rate] : runs) {
        Optimizer optimizer(network.device(), options, network.model().plan());
        network.set_weights(free_steps, 1);
        for (std::uint64_t step = 0; step < 100; ++step) {
            CAPTURE(step);
            const double loss = network.loss_and_grads(free_steps + step, optimizer.next(rate));
            const auto expected = fixture.next<double>();
            CHECK(std::abs(loss - expected) < 1e-5);
            worst = std::max(worst, std::abs(loss - expected));
            optimizer.apply(network.step(), network.model().parameters(), network.model().grads());
            network.model().pack();
        }
    }
    MESSAGE("largest difference of the loss in 100 steps: " << worst);
}

}  // namespace

TEST_CASE("tutorial network, 2 convolutions: loss and gradients match PyTorch to 1e-5 from 100 states") {
    check_states(2, "gradients_l2.bin", 1e-5);
}

TEST_CASE("tutorial network, 6 convolutions: loss and gradients match PyTorch to 2e-5 from 100 states") {
    check_states(6, "gradients_l6.bin", 2e-5);
}

TEST_CASE("tutorial network, 2 convolutions: the losses of 100 steps of Adadelta and SGD match PyTorch to 1e-5") {
    check_losses(2, "losses_l2.bin");
}

TEST_CASE("tutorial network, 6 convolutions: the losses of 100 steps of Adadelta and SGD match PyTorch to 1e-5") {
    check_losses(6, "losses_l6.bin");
}

namespace {

constexpr std::size_t elements = 32;

/// An optimizer of the fixture. tools/fixtures/pytorch_fixtures.py has the same list.
struct Update {
    backend::Optimizer options;
    double rate;
};
const std::array<Update, 8> updates{{
    {backend::Sgd{}, 0.1},
    {backend::Sgd{.momentum = 0.9}, 0.1},
    {backend::Sgd{.momentum = 0.9, .weight_decay = 1e-2, .nesterov = true}, 0.1},
    {backend::Adam{}, 0.01},
    {backend::Adam{.weight_decay = 1e-2}, 0.01},
    {backend::AdamW{}, 0.01},
    {backend::Adadelta{}, 1.0},
    {backend::Adadelta{.weight_decay = 1e-2}, 1.0},
}};

std::vector<float> squared(std::vector<float> values) {
    for (float& value : values) {
        value *= value;
    }
    return values;
}

NamedArray floats(const char* name, std::vector<float> values) {
    return {.name = name, .shape = {static_cast<std::int64_t>(values.size())}, .values = std::move(values)};
}

/// Returns the optimizer's state before the step. State 0 is a new optimizer.
NamedArrays optimizer_state(const backend::Optimizer& options, std::uint64_t state) {
    const auto scale = static_cast<float>(std::pow(10.0, -static_cast<double>(state % 5)));
    const bool adadelta = std::holds_alternative<backend::Adadelta>(options);
    std::vector<float> a(elements);
    std::vector<float> b(elements);
    if (state > 0) {
        a = test::uniforms(Stream::state_a, state, elements, scale);
        b = squared(test::uniforms(Stream::state_b, state, elements, adadelta ? 0.01F : scale));
        if (adadelta) {
            a = squared(a);
        }
    }
    const auto steps = static_cast<std::int64_t>(7 * state);
    return {{.name = "optimizer/step", .shape = {}, .values = std::vector<std::int64_t>{steps}},
            floats("optimizer/state_a", std::move(a)),
            floats("optimizer/state_b", std::move(b))};
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    }
    return largest;
}

/// Checks one array of the optimizer's state. `allowed` is relative to the array's largest entry.
void check_state_array(const NamedArrays& state, const char* name, const std::vector<float>& expected, double allowed) {
    for (const NamedArray& array : state) {
        if (array.name == name) {
            const std::vector<float> zeros(elements);
            CHECK(largest_difference(std::get<std::vector<float>>(array.values), expected) <=
                  allowed * largest_difference(expected, zeros));
        }
    }
}

}  // namespace

TEST_CASE("optimizers: from 100 states the update and the new state match PyTorch to 1e-5") {
    const auto device = backend::make_cpu_device(1);
    const backend::Buffer parameters = device->allocate(elements);
    const backend::Buffer grads = device->allocate(elements);
    const std::vector<std::uint8_t> pixels(1);
    const std::vector<std::int32_t> labels(1);
    const auto step = device->make_step_context({.pixels = pixels, .labels = labels, .pixels_per_image = 1}, 1);
    Fixture fixture("updates.bin");

    for (std::size_t kind = 0; kind < updates.size(); ++kind) {
        for (std::uint64_t state = 0; state < states; ++state) {
            CAPTURE(kind);
            CAPTURE(state);
            const auto scale = static_cast<float>(std::pow(10.0, -static_cast<double>(state % 5)));
            const auto start = test::uniforms(Stream::parameter, state, elements, 0.01F);
            device->upload(start, parameters.data());
            device->upload(test::uniforms(Stream::grad, state, elements, scale), grads.data());
            ModelPlan plan;
            plan.parameters = elements;
            Optimizer optimizer(*device, updates[kind].options, plan);
            optimizer.set_state(optimizer_state(updates[kind].options, state));

            step->fill(std::vector<std::int64_t>{0},
                       std::vector<backend::StepScalars>{{.optimizer = optimizer.next(updates[kind].rate)}});
            device->next_step(*step);
            optimizer.apply(*step, parameters.span(), grads.span());

            std::vector<float> result(elements);
            device->download(parameters.data(), result);
            const auto expected = fixture.floats(elements);
            // The new parameter is rounded by up to one unit in the last place of 0.01.
            constexpr double rounding = 0.01 * 0x1p-23;
            CHECK(largest_difference(result, expected) <= 1e-5 * largest_difference(expected, start) + rounding);
            check_state_array(optimizer.state(), "optimizer/state_a", fixture.floats(elements), 1e-5);
            // beta2 is passed as a float: 1 − 0.999F differs from 0.001 by 1.3e-5. The bias correction cancels this
            // error.
            check_state_array(optimizer.state(), "optimizer/state_b", fixture.floats(elements), 2e-5);
        }
    }
}
