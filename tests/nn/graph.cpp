// Tests of models that are not chains: blocks, shortcuts, and values that several nodes read.
#include "finch/base/error.hpp"

#include "trial.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace finch;
using namespace finch::nn;
using backend::Activation;
using test::check_slopes;
using test::Trial;

namespace {

constexpr std::int64_t batch = 6;
constexpr std::int64_t samples = 5;  ///< the last sample of the batch is padding
constexpr std::int64_t classes = 4;

/// Returns a model with every kind of node: a block with a projection, one with an identity shortcut inside another
/// block, one without a shortcut, and one with an empty body.
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

/// Returns the plan with a separate memory range for each value and gradient, so that nothing is overwritten.
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

TEST_CASE("graph: reusing memory changes no bit of loss, gradients and running statistics") {
    Trial planned(plan_of(every_node()), samples);
    Trial spread(spread_out(plan_of(every_node())), samples);

    CHECK(planned.model.plan().activations < spread.model.plan().activations * 3 / 4);
    CHECK(planned.loss() == spread.loss());
    CHECK(planned.grads() == spread.grads());
    CHECK(planned.model.state().buffers == spread.model.state().buffers);
    CHECK(planned.loss(backend::Mode::validation) == spread.loss(backend::Mode::validation));
}

TEST_CASE("graph: every tensor's gradient matches finite differences of the loss") {
    Trial trial(plan_of(every_node()), samples);

    // A bias before batch normalisation has no effect on the loss: its slope is 0.
    check_slopes(trial, 4e-4, 2e-3);
}

TEST_CASE("graph: modules have PyTorch's names, in PyTorch's order") {
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

TEST_CASE("graph: an invalid block is rejected; the message names the block or the layer in it") {
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
