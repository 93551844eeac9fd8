// Tests of whole models that store activations as bfloat16.
#include "backend/make_device.hpp"
#include "backend/tensors.hpp"
#include "cuda/device_array.hpp"
#include "nn/trial.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <string>
#include <variant>
#include <vector>

using namespace finch;
using namespace finch::nn;
using backend::Activation;
using backend::Precision;

namespace {

/// A small residual network: 3 -> 32 channels, a block, a block that halves the image, and the classes.
ModelSpec residual(Activation activation = Activation::relu) {
    const auto conv = [](std::int64_t channels, std::int64_t stride = 1) {
        return ConvLayer{.channels = channels, .kernel = 3, .stride = stride};
    };
    const BatchNormLayer norm{.activation = activation};
    return {conv(32),
            norm,
            BlockLayer{.layers = {conv(32), norm, conv(32), BatchNormLayer{}}, .activation = activation},
            BlockLayer{.layers = {conv(40, 2), norm, conv(40), BatchNormLayer{}}, .activation = activation},
            GlobalAveragePoolLayer{},
            FlattenLayer{},
            LinearLayer{}};
}

ModelPlan plan_of(const ModelSpec& spec, Precision precision) {
    return plan_model(spec, {6, 6, 3}, 10, 4, {.precision = precision});
}

/// One letter per value: b for bfloat16, f for float32.
std::string types(const ModelSpec& spec, Precision precision) {
    std::string letters;
    for (const Value& value : with_layouts(*test::make_device(), plan_of(spec, precision)).values) {
        letters += value.type == backend::TensorType::bfloat16 ? 'b' : 'f';
    }
    return letters;
}

/// Returns the cosine of the angle between two gradients.
double cosine(const std::vector<float>& a, const std::vector<float>& b) {
    double product = 0, of_a = 0, of_b = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        product += double{a[i]} * double{b[i]};
        of_a += double{a[i]} * double{a[i]};
        of_b += double{b[i]} * double{b[i]};
    }
    return product / std::sqrt(of_a * of_b);
}

}  // namespace

TEST_CASE("values are stored as bfloat16 if all operations that touch them support it") {
    // Input; conv, norm; conv, norm, conv, norm, sum; conv, norm, conv, norm, shortcut, sum; mean, logits.
    CHECK(types(residual(), Precision::bfloat16) == "fbbbbbbbbbbbbbff");
    CHECK(types(residual(), Precision::float32) == "ffffffffffffffff");
    CHECK(types(residual(), Precision::float16) == "ffffffffffffffff");
    // Own kernels for few channels, layer normalisation and dropout are float32.
    const ConvLayer wide{.channels = 32, .kernel = 3, .activation = Activation::relu};
    const ConvLayer slim{.channels = 8, .kernel = 3, .activation = Activation::relu};
    CHECK(types({wide, wide, LayerNormLayer{}, wide, DropoutLayer{}, wide, PoolLayer{}, FlattenLayer{}, LinearLayer{}},
                Precision::bfloat16) == "fbffffbff");
    CHECK(types({slim, slim, FlattenLayer{}, LinearLayer{}}, Precision::bfloat16) == "ffff");
    CHECK(types({slim, BatchNormLayer{}, PoolLayer{}, FlattenLayer{}, LinearLayer{}}, Precision::bfloat16) == "fffff");
}

TEST_CASE("a residual network in bfloat16 has about the loss and the gradients of float32") {
    for (const Activation activation : {Activation::relu, Activation::tanh, Activation::silu}) {
        const ModelSpec spec = residual(activation);
        for (const std::int64_t samples : {4, 3}) {
            test::Trial exact(plan_of(spec, Precision::float32), samples, test::make_device());
            test::Trial trial(plan_of(spec, Precision::bfloat16), samples, test::make_device());
            const double loss = trial.loss();
            const std::vector<float> grads = trial.grads();

            CHECK(std::abs(loss - exact.loss()) < 0.02);
            CHECK(cosine(grads, exact.grads()) > 0.99);
            CHECK(trial.loss() == loss);
            CHECK(trial.grads() == grads);
            CHECK(test::same_in_every_order([&] { return std::pair(trial.loss(), trial.grads()); }));

            const std::vector<float> running = exact.model.state().buffers;
            CHECK(difference(trial.model.state().buffers, reference::Tensor(running.begin(), running.end())) < 0.01);
            CHECK(std::abs(trial.loss(backend::Mode::validation) - exact.loss(backend::Mode::validation)) < 0.02);
            int skipped = 0;
            for (const Node& node : trial.model.plan().nodes) {
                const auto* const shape = std::get_if<backend::ConvolutionShape>(&node.operation);
                if (shape != nullptr && shape->skips_bias) {
                    const auto bias = grads.begin() + node.parameters_offset + shape->weights();
                    CHECK(std::vector<float>(bias, bias + shape->channels_out) ==
                          std::vector<float>(static_cast<std::size_t>(shape->channels_out)));
                    ++skipped;
                }
            }
            CHECK(skipped == 5);  // all but the shortcut's
        }
    }
}

TEST_CASE("a convolution keeps its bias if something else than a batch normalisation reads its output too") {
    const ConvLayer conv{.channels = 32, .kernel = 3};
    const BatchNormLayer relu{.activation = Activation::relu};
    // The block adds the first convolution's output to the body's output (pre-activation ResNet).
    const ModelSpec spec{conv,           BlockLayer{.layers = {relu, conv, relu, conv}},
                         relu,           GlobalAveragePoolLayer{},
                         FlattenLayer{}, LinearLayer{}};
    test::Trial exact(plan_of(spec, Precision::float32), 4, test::make_device());
    test::Trial trial(plan_of(spec, Precision::bfloat16), 4, test::make_device());
    std::vector<bool> skips;
    for (const Node& node : trial.model.plan().nodes) {
        if (const auto* const shape = std::get_if<backend::ConvolutionShape>(&node.operation)) {
            skips.push_back(shape->skips_bias);
        }
    }

    CHECK(skips == std::vector{false, true, false});
    CHECK(std::abs(trial.loss() - exact.loss()) < 0.02);
    CHECK(cosine(trial.grads(), exact.grads()) > 0.99);
}
