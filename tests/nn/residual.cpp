// Compares networks that contain all kinds of layers with values from PyTorch (tools/fixtures/pytorch_fixtures.py), on
// any device.
#include "finch/nn/average.hpp"
#include "finch/nn/model.hpp"
#include "finch/nn/optimizer.hpp"

#include "backend/make_device.hpp"
#include "nn/fixtures.hpp"
#include "nn/formula.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

using namespace finch;
using namespace finch::nn;
using backend::Activation;
using test::Fixture;
using test::Stream;

namespace {

constexpr std::int64_t batch = test::fixture_batch;
/// Returns the number of states to check: 50, or FINCH_TEST_STATES for slow devices.
std::uint64_t states() {
    const char* text = std::getenv("FINCH_TEST_STATES");
    return text == nullptr ? 50 : std::stoull(text);
}
constexpr std::uint64_t sampled = 16;

BlockLayer block(std::int64_t channels, std::int64_t stride) {
    return {.layers = {ConvLayer{.channels = channels, .kernel = 3, .stride = stride, .padding = 1},
                       BatchNormLayer{.activation = Activation::relu},
                       ConvLayer{.channels = channels, .kernel = 3, .padding = 1}, BatchNormLayer{}},
            .activation = Activation::relu};
}

ModelPlan residual_network() {
    return plan_model({ConvLayer{.channels = 8, .kernel = 3, .padding = 1},
                       BatchNormLayer{.activation = Activation::relu}, block(8, 1), block(16, 2), block(16, 1),
                       PoolLayer{.kind = backend::Pooling::average, .kernel = 14}, FlattenLayer{}, LinearLayer{}},
                      {28, 28, 1}, 10, batch);
}

ModelPlan layers_network() {
    const BlockLayer dense{.layers = {ConvLayer{.channels = 6, .kernel = 1, .activation = Activation::leaky_relu}},
                           .join = Join::concatenate};
    const BlockLayer inverted{.layers = {ConvLayer{.channels = 12, .kernel = 5, .groups = 0}, LayerNormLayer{}},
                              .activation = Activation::silu};
    return plan_model({ConvLayer{.channels = 8, .kernel = 3, .activation = Activation::gelu},
                       ConvLayer{.channels = 8, .kernel = 3, .dilation = 2, .groups = 8},
                       LayerNormLayer{.activation = Activation::silu}, dense,
                       ConvLayer{.channels = 12, .kernel = 3, .stride = 2, .groups = 2, .activation = Activation::gelu},
                       inverted, GlobalAveragePoolLayer{}, FlattenLayer{}, LinearLayer{.units = 16},
                       LayerNormLayer{.activation = Activation::gelu}, LinearLayer{}},
                      {28, 28, 1}, 10, batch);
}

ModelPlan smooth_network() {
    return plan_model(
        {ConvLayer{.channels = 8, .kernel = 3, .padding = 1}, BatchNormLayer{.activation = Activation::tanh},
         PoolLayer{.kind = backend::Pooling::average, .kernel = 4}, FlattenLayer{}, LinearLayer{}},
        {28, 28, 1}, 10, batch);
}

/// Returns the parameters of a state of the fixture, and the initial running statistics.
ModelState state_of(const ModelPlan& plan, std::uint64_t number) {
    ModelState state{.parameters = std::vector<float>(static_cast<std::size_t>(plan.parameters)),
                     .buffers = std::vector<float>(static_cast<std::size_t>(plan.buffers))};
    std::uint64_t index = 0;
    for (const TensorInfo& tensor : plan.tensors) {
        const auto offset = static_cast<std::size_t>(tensor.offset);
        const auto size = static_cast<std::size_t>(tensor.size);
        if (!tensor.learns) {
            std::fill_n(state.buffers.begin() + tensor.offset, size, tensor.initial);
            continue;
        }
        const bool norm = tensor.fan_in == 0;
        const auto spread = static_cast<float>(1.5 / std::sqrt(static_cast<double>(tensor.fan_in)));
        const float scale = !norm ? spread : tensor.initial == 1.0F ? 0.5F : 0.1F;
        for (std::size_t i = 0; i < size; ++i) {
            state.parameters[offset + i] = tensor.initial + test::uniform(Stream::weight, number, index, i) * scale;
        }
        ++index;
    }
    return state;
}

struct Network {
    Network(const ModelPlan& plan, std::uint64_t number)
        : model(*device, plan), images(number, true), context(device->make_step_context(images.images(), batch)) {
        model.set_state(state_of(model.plan(), number));
    }

    /// Returns the mean loss of one step. In training it also computes the gradients.
    double run(backend::Mode mode, backend::StepScalars scalars = {}) {
        std::vector<std::int64_t> indices(batch);
        std::iota(indices.begin(), indices.end(), 0);
        scalars.grad_scale = 1.0F / batch;
        context->fill(indices, std::span(&scalars, 1));
        context->set_sums({});
        const backend::Pass pass{.step = *context, .mode = mode};
        device->next_step(pass.step);
        device->load_batch(pass.step, model.input());
        model.forward(pass);
        const bool trains = mode == backend::Mode::training;
        device->softmax_cross_entropy(pass.step, model.logits(), 10, trains ? model.grad_logits() : nullptr);
        if (trains) {
            model.backward(pass, [](std::int64_t /*begin*/, std::int64_t /*end*/) {});
        }
        return context->sums().loss / static_cast<double>(batch);
    }

    std::unique_ptr<backend::Device> device = test::make_device();
    Model model;
    test::FixtureImages images;
    std::unique_ptr<backend::StepContext> context;
};

void check_states(const ModelPlan& plan, const std::string& file) {
    Fixture fixture(file);
    double worst = 0;
    for (std::uint64_t number = 0; number < states(); ++number) {
        const auto state = static_cast<std::uint64_t>(fixture.next<double>());
        CAPTURE(state);
        Network network(plan, state);
        CHECK(network.run(backend::Mode::training) == doctest::Approx(fixture.next<double>()).epsilon(1e-5));
        std::vector<float> grads(static_cast<std::size_t>(plan.parameters));
        network.device->download(network.model.grads().data(), grads);
        std::uint64_t index = 0;
        for (const TensorInfo& tensor : plan.tensors) {
            if (tensor.learns) {
                CAPTURE(tensor.name);
                const auto apart = test::compare(fixture, sampled, index++,
                                                 std::span(grads).subspan(static_cast<std::size_t>(tensor.offset),
                                                                          static_cast<std::size_t>(tensor.size)));
                CHECK(apart.sampled < 1e-5);
                CHECK(apart.projection < 1e-5);
                worst = std::max({worst, apart.sampled, apart.projection});
            }
        }
        const ModelState after = network.model.state();
        for (const TensorInfo& tensor : plan.tensors) {
            for (std::int64_t i = 0; !tensor.learns && i < tensor.size; ++i) {
                const auto found = static_cast<double>(after.buffers[static_cast<std::size_t>(tensor.offset + i)]);
                CHECK(found == doctest::Approx(static_cast<double>(fixture.next<float>())).epsilon(1e-5));
            }
        }
        CHECK(network.run(backend::Mode::validation) == doctest::Approx(fixture.next<double>()).epsilon(1e-5));
    }
    MESSAGE("largest difference, in shares of a tensor's largest entry: " << worst);
}

/// Compares all tensors with the fixture, in the order of the plan. For a parameter the fixture has its largest entry
/// and sampled entries, for a buffer all entries.
void check_tensors(Fixture& fixture, const ModelPlan& plan, const ModelState& state) {
    std::uint64_t index = 0;
    for (const TensorInfo& tensor : plan.tensors) {
        CAPTURE(tensor.name);
        const auto values =
            std::span(tensor.learns ? state.parameters : state.buffers)
                .subspan(static_cast<std::size_t>(tensor.offset), static_cast<std::size_t>(tensor.size));
        const double scale = tensor.learns ? static_cast<double>(fixture.next<float>()) : 1;
        const std::uint64_t count = tensor.learns ? sampled : values.size();
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t at = tensor.learns ? test::word(Stream::index, 0, index, i) % values.size() : i;
            CHECK(std::abs(static_cast<double>(values[at]) - static_cast<double>(fixture.next<float>())) <
                  1e-6 * scale);
        }
        ++index;
    }
}

void check_names(const ModelPlan& plan, const std::string& file) {
    const NamedArrays arrays = name_tensors(plan, state_of(plan, 0));
    Fixture fixture(file);
    std::size_t lines = 0;
    for (std::string line; fixture.line(line); ++lines) {
        std::istringstream words(line);
        std::string name;
        words >> name;
        std::vector<std::int64_t> shape;
        for (std::int64_t size = 0; words >> size;) {
            shape.push_back(size);
        }
        CAPTURE(name);
        CHECK(find_array(arrays, name).shape == shape);
    }
    CHECK(lines == arrays.size());
}

}  // namespace

TEST_CASE("residual network: loss, gradients and running statistics from recorded states match PyTorch to 1e-5") {
    check_states(residual_network(), "residual.bin");
}

TEST_CASE("network of all other layers: loss and gradients from recorded states match PyTorch to 1e-5") {
    check_states(layers_network(), "layers.bin");
}

TEST_CASE("average: after each of six steps the averaged weights, statistics and loss match PyTorch") {
    const ModelPlan plan = smooth_network();
    Fixture fixture("average.bin");
    for (std::uint64_t state = 0; state < std::min<std::uint64_t>(states(), 20); ++state) {
        CAPTURE(state);
        Network network(plan, state);
        Optimizer optimizer(*network.device, backend::Sgd{}, plan);
        WeightAverage average(*network.device, plan, 0.8);
        for (int step = 0; step < 6; ++step) {
            CAPTURE(step);
            network.run(backend::Mode::training, {.optimizer = optimizer.next(0.01), .average_share = average.next()});
            optimizer.apply(*network.context, network.model.parameters(), network.model.grads());
            average.apply(*network.context, network.model);
            average.pack_into(network.model);

            check_tensors(fixture, plan, average.state());
            CHECK(network.run(backend::Mode::validation) == doctest::Approx(fixture.next<double>()).epsilon(1e-5));

            network.model.pack();
        }
        CHECK(average.taken() == 6);
    }
}

TEST_CASE("the names and shapes of all tensors match PyTorch's state_dict") {
    check_names(residual_network(), "residual.txt");
    check_names(layers_network(), "layers.txt");
}
