#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
// Models that are no chain: blocks, shortcuts, values with several readers.
#include "finch/base/error.hpp"
#include "finch/base/random.hpp"
#include "finch/nn/initialization.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <numeric>
#include <string>
#include <vector>

using namespace finch;
using namespace finch::nn;
using backend::Activation;

namespace {

constexpr std::int64_t batch = 6;
constexpr std::int64_t samples = 5;  ///< the last one is padding
constexpr std::int64_t classes = 4;

/// A projection, an identity, a block within a block, one without a shortcut, one whose body does nothing; every kind
/// of node.
ModelSpec every_node() {
    const BlockLayer identity{.layers = {ConvLayer{.channels = 6, .kernel = 3}, BatchNormLayer{}},
                              .activation = Activation::tanh};
    const BlockLayer projection{
        .layers = {ConvLayer{.channels = 6, .kernel = 3, .stride = 2, .padding = 1, .activation = Activation::tanh}},
        .repeat = 2};
    const BlockLayer nested{.layers = {identity, DropoutLayer{.rate = 0.3}}};
    const BlockLayer plain{.layers = {ConvLayer{.channels = 5, .kernel = 1}}, .residual = false};
    const BlockLayer empty{.layers = {ConvLayer{.repeat = 0}}};
    const BlockLayer features{.layers = {LinearLayer{.units = 9, .activation = Activation::tanh}}};
    return {PoolLayer{.kind = backend::Pooling::average, .kernel = 2, .stride = 1},
            projection,
            nested,
            plain,
            empty,
            BatchNormLayer{.activation = Activation::sigmoid},
            FlattenLayer{},
            features,
            BatchNormLayer{},
            LinearLayer{}};
}

ModelPlan plan_of(const ModelSpec& spec) {
    return plan_model(spec, {11, 13, 2}, classes, batch);
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
        context = device->make_step_context({.pixels = pixels, .labels = labels, .pixels_per_image = 1}, batch);
    }

    /// The mean loss of a step from `state`; makes the gradients in training.
    double loss(backend::Mode mode = backend::Mode::training) {
        model.set_state(state);
        std::vector<std::int64_t> indices(batch, -1);
        std::iota(indices.begin(), indices.begin() + samples, 0);
        context->set_sums({});
        context->fill(indices, std::vector<backend::StepScalars>{{.grad_scale = 1.0F / samples, .random_key = {1, 2}}});
        const backend::Pass pass{.step = *context, .mode = mode};
        device->next_step(pass.step);
        device->upload(input, model.input());
        model.forward(pass);
        const bool trains = mode == backend::Mode::training;
        device->softmax_cross_entropy(pass.step, model.logits(), classes, trains ? model.grad_logits() : nullptr);
        if (trains) {
            model.backward(pass, [](std::int64_t /*begin*/, std::int64_t /*end*/) {});
        }
        return context->sums().loss / static_cast<double>(samples);
    }

    std::vector<float> grads() {
        std::vector<float> result(state.parameters.size());
        device->download(model.grads().data(), result);
        return result;
    }

    std::unique_ptr<backend::Device> device = backend::make_cpu_device(1);
    Model model;
    std::vector<float> input;
    std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(batch);
    std::vector<std::int32_t> labels;
    std::unique_ptr<backend::StepContext> context;
    ModelState state;
};

/// The plan with a place of its own for everything: nothing is overwritten.
ModelPlan spread_out(ModelPlan plan) {
    std::int64_t next = 0;
    const auto place = [&](std::size_t value) {
        return std::exchange(next, next + batch * plan.values[value].shape.size());
    };
    std::vector<std::int64_t> grads;
    for (std::size_t value = 0; value < plan.values.size(); ++value) {
        plan.values[value].offset = place(value);
        grads.push_back(place(value));
    }
    std::vector<bool> written(plan.values.size());
    for (auto node = plan.nodes.rbegin(); node != plan.nodes.rend(); ++node) {
        node->grad_output = grads[node->output];
        for (std::size_t k = 0; k < node->inputs.size(); ++k) {
            const std::size_t value = node->inputs[k];
            InputGrad& grad = node->grad_inputs[k];
            grad.offset = written[value] ? place(value) : grads[value];
            grad.add_to = written[value] ? grads[value] : -1;
            written[value] = written[value] || grad.is_needed;
        }
    }
    plan.grad_logits = grads.back();
    plan.activations = next;
    return plan;
}

std::string complaint(const ModelSpec& spec) {
    try {
        static_cast<void>(plan_of(spec));
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("graph: memory that is used again changes no bit of loss, gradients and running statistics") {
    Trial planned(plan_of(every_node()));
    Trial spread(spread_out(plan_of(every_node())));

    CHECK(planned.model.plan().activations < spread.model.plan().activations * 3 / 4);
    CHECK(planned.loss() == spread.loss());
    CHECK(planned.grads() == spread.grads());
    CHECK(planned.model.state().buffers == spread.model.state().buffers);
    CHECK(planned.loss(backend::Mode::validation) == spread.loss(backend::Mode::validation));
}

TEST_CASE("graph: every tensor's gradient is the loss's slope by finite differences") {
    Trial trial(plan_of(every_node()));
    static_cast<void>(trial.loss());
    const std::vector<float> grads = trial.grads();
    const std::vector<float> start = trial.state.parameters;
    double most = 0;
    for (const float grad : grads) {
        most = std::max(most, std::abs(static_cast<double>(grad)));
    }
    for (const TensorInfo& tensor : trial.model.plan().tensors) {
        if (!tensor.learns) {
            continue;
        }
        CAPTURE(tensor.name);
        // Along the signs of the tensor's own gradient, where the slope is largest.
        constexpr double step = 4e-4;
        const auto loss_at = [&](double by) {
            trial.state.parameters = start;
            for (auto i = static_cast<std::size_t>(tensor.offset);
                 i < static_cast<std::size_t>(tensor.offset + tensor.size); ++i) {
                trial.state.parameters[i] += static_cast<float>(std::copysign(by, by * static_cast<double>(grads[i])));
            }
            return trial.loss();
        };
        double slope = 0;
        for (auto i = static_cast<std::size_t>(tensor.offset);
             i < static_cast<std::size_t>(tensor.offset + tensor.size); ++i) {
            slope += std::abs(static_cast<double>(grads[i]));
        }
        const double found = (loss_at(step) - loss_at(-step)) / (2 * step);

        // A bias before batch normalisation has the slope 0.
        CHECK(std::abs(found - slope) < 0.02 * slope + 2e-3 * most);
    }
}

TEST_CASE("graph: modules are named as PyTorch's are, in its order") {
    const ModelPlan plan = plan_of(every_node());
    std::vector<std::string> names;
    for (const TensorInfo& tensor : plan.tensors) {
        if (tensor.name.ends_with("weight") || tensor.name.ends_with("mean")) {
            names.push_back(tensor.name);
        }
    }

    CHECK(names == std::vector<std::string>{"1.body.0.weight", "1.shortcut.weight", "2.body.0.weight",
                                            "2.shortcut.weight", "3.body.0.body.0.weight", "3.body.0.body.1.weight",
                                            "3.body.0.body.1.running_mean", "4.body.0.weight", "6.weight",
                                            "6.running_mean", "9.body.0.weight", "9.shortcut.weight", "10.weight",
                                            "10.running_mean", "11.weight"});
    CHECK(plan.counters == std::vector<std::string>{"3.body.0.body.1.num_batches_tracked", "6.num_batches_tracked",
                                                    "10.num_batches_tracked"});
    CHECK(std::get<backend::ConvolutionShape>(plan.nodes[2].operation).stride == 2);
    CHECK(plan.tensors[2].shape == std::vector<std::int64_t>{6, 2, 1, 1});
}

TEST_CASE("graph: a block that cannot be is refused, naming it or the layer within it") {
    const std::string shrinks =
        complaint({BlockLayer{.layers = {ConvLayer{.kernel = 4, .padding = 0}}}, FlattenLayer{}, LinearLayer{}});
    CHECK(contains(shrinks, "model[0] (block): its body makes (8, 10, 10) of (11, 13, 2)"));
    CHECK(contains(complaint({FlattenLayer{}, BlockLayer{.layers = {LinearLayer{.units = 3}, ConvLayer{}}}}),
                   "model[1].layers[1] (conv)"));
    CHECK(contains(complaint({BlockLayer{.layers = {FlattenLayer{}, LinearLayer{}}}}), "model[0] (block): a flatten"));
    CHECK(contains(complaint({FlattenLayer{}, BatchNormLayer{}, LinearLayer{}}), "model[1] (batch_norm)"));
    CHECK(contains(complaint({DropoutLayer{.rate = 1}, FlattenLayer{}, LinearLayer{}}), "model[0] (dropout): rate"));
    CHECK(contains(complaint({FlattenLayer{}, BlockLayer{.layers = {LinearLayer{}}, .activation = Activation::relu}}),
                   "activation is relu"));
    CHECK(contains(complaint({FlattenLayer{},
                              BlockLayer{.layers = {LinearLayer{.activation = Activation::tanh}}, .residual = false}}),
                   "activation is tanh"));
    CHECK(contains(complaint({BlockLayer{.layers = {BlockLayer{.layers = {ConvLayer{.repeat = 200}}, .repeat = 200}}}}),
                   "more than 10000 operations"));
}
