#include "finch/nn/plan.hpp"

#include "finch/base/error.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>

using namespace finch;
using namespace finch::nn;
using backend::Activation;
using backend::Pooling;

namespace {

constexpr SampleShape mnist{28, 28, 1};

/// Returns the network of Propulate's tutorial.
ModelSpec tutorial(std::int64_t convolutions) {
    return {ConvLayer{.channels = 10, .kernel = 3, .activation = Activation::relu, .repeat = convolutions},
            FlattenLayer{}, LinearLayer{}};
}

/// Returns the error message of plan_model(), or an empty string if it accepts `spec`.
std::string complaint(const ModelSpec& spec, SampleShape input = mnist) {
    try {
        (void)plan_model(spec, input, 10, 16);
    } catch (const ConfigError& error) {
        return error.what();
    }
    return {};
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("plan: tensors have PyTorch's names, shapes and fan-in") {
    const ModelPlan plan = plan_model(tutorial(2), mnist, 10, 16);

    REQUIRE(plan.tensors.size() == 6);
    CHECK(plan.tensors[0].name == "0.weight");
    CHECK(plan.tensors[0].shape == std::vector<std::int64_t>{10, 1, 3, 3});
    CHECK(plan.tensors[0].fan_in == 9);
    CHECK(plan.tensors[1].name == "0.bias");
    CHECK(plan.tensors[1].shape == std::vector<std::int64_t>{10});
    CHECK(plan.tensors[1].fan_in == 9);
    CHECK(plan.tensors[2].name == "2.weight");
    CHECK(plan.tensors[2].shape == std::vector<std::int64_t>{10, 10, 3, 3});
    CHECK(plan.tensors[2].fan_in == 90);
    // Modules: 0 conv, 1 relu, 2 conv, 3 relu, 4 flatten, 5 linear.
    CHECK(plan.tensors[4].name == "5.weight");
    CHECK(plan.tensors[4].shape == std::vector<std::int64_t>{10, 7840});
    CHECK(plan.tensors[5].name == "5.bias");
    CHECK(plan.tensors[5].fan_in == 7840);
}

TEST_CASE("plan: the tutorial's network has 79 420, 83 060 and 86 700 parameters with 2, 6 and 10 convolutions") {
    CHECK(plan_model(tutorial(2), mnist, 10, 16).parameters == 79420);
    CHECK(plan_model(tutorial(6), mnist, 10, 16).parameters == 83060);
    CHECK(plan_model(tutorial(10), mnist, 10, 16).parameters == 86700);
}

TEST_CASE("plan: the arena starts with the last layer, weight before bias, without gaps") {
    const ModelPlan plan = plan_model(tutorial(3), mnist, 10, 16);

    std::int64_t offset = 0;
    for (std::size_t layer = 4; layer-- > 0;) {
        const TensorInfo& weight = plan.tensors[2 * layer];
        const TensorInfo& bias = plan.tensors[2 * layer + 1];
        CHECK(weight.offset == offset);
        CHECK(bias.offset == offset + weight.size);
        CHECK(plan.nodes[layer].parameters_offset == offset);
        CHECK(plan.nodes[layer].parameters == weight.size + bias.size);
        offset += weight.size + bias.size;
    }
    CHECK(offset == plan.parameters);
}

TEST_CASE("plan: shapes follow floor((size + padding - kernel) / stride) + 1") {
    const ModelSpec spec{
        ConvLayer{.channels = 7, .kernel = 5, .stride = 2, .padding = 1, .activation = Activation::tanh},
        PoolLayer{.kind = Pooling::average, .kernel = 3, .stride = 2, .padding = 1},
        ConvLayer{.channels = 4, .kernel = 3},
        PoolLayer{},
        ActivationLayer{Activation::sigmoid},
        FlattenLayer{},
        LinearLayer{.units = 12, .activation = Activation::relu},
        LinearLayer{}};

    const ModelPlan plan = plan_model(spec, {29, 31, 3}, 10, 8);

    REQUIRE(plan.nodes.size() == 7);
    CHECK(plan.values[1].shape == SampleShape{14, 15, 7});
    CHECK(plan.values[2].shape == SampleShape{7, 8, 7});
    CHECK(plan.values[3].shape == SampleShape{7, 8, 4});
    CHECK(plan.values[4].shape == SampleShape{3, 4, 4});
    CHECK(plan.values[5].shape == SampleShape{3, 4, 4});
    CHECK(plan.values[5].shape == SampleShape{3, 4, 4});
    CHECK(plan.values[6].shape == SampleShape{1, 1, 12});
    CHECK(plan.values[7].shape == SampleShape{1, 1, 10});
    // Modules: 0 conv, 1 tanh, 2 pool, 3 conv, 4 pool, 5 sigmoid, 6 flatten, 7 linear, 8 relu, 9 linear.
    CHECK(plan.tensors.back().name == "9.bias");
    CHECK(std::get<backend::ActivationShape>(plan.nodes[4].operation).count == 8 * 3 * 4 * 4);
}

TEST_CASE("plan: `same` keeps the image size; for an even kernel it pads one more row after than before") {
    const ModelPlan plan =
        plan_model({ConvLayer{.channels = 2, .kernel = 4}, FlattenLayer{}, LinearLayer{}}, mnist, 10, 1);

    const auto& shape = std::get<backend::ConvolutionShape>(plan.nodes[0].operation);
    CHECK(shape.padding_before == 1);
    CHECK(shape.padding_after == 2);
    CHECK(plan.values[1].shape == SampleShape{28, 28, 2});
}

TEST_CASE("plan: `same` with a stride divides the size by the stride, rounded up, for every dilation") {
    for (const std::int64_t size : {27, 28})
        for (const std::int64_t kernel : {1, 3, 5})
            for (const std::int64_t dilation : {1, 2}) {
                const ModelPlan plan =
                    plan_model({ConvLayer{.channels = 2, .kernel = kernel, .stride = 2, .dilation = dilation},
                                FlattenLayer{}, LinearLayer{}},
                               {size, size, 1}, 10, 1);
                CHECK(plan.values[1].shape == SampleShape{14, 14, 2});
            }
}

TEST_CASE("plan: an activation that needs its input is a separate operation; module numbers do not change") {
    const ModelPlan plan = plan_model({ConvLayer{.activation = Activation::gelu}, FlattenLayer{},
                                       LinearLayer{.units = 5, .activation = Activation::silu}, LinearLayer{}},
                                      mnist, 10, 2);
    REQUIRE(plan.nodes.size() == 5);
    CHECK(std::get<backend::ConvolutionShape>(plan.nodes[0].operation).activation == Activation::none);
    CHECK(std::get<backend::ActivationShape>(plan.nodes[1].operation).activation == Activation::gelu);
    CHECK(std::get<backend::ActivationShape>(plan.nodes[3].operation).activation == Activation::silu);
    CHECK(plan.tensors.back().name == "5.bias");  // 0 conv, 1 gelu, 2 flatten, 3 linear, 4 silu, 5 linear
}

TEST_CASE("plan: a depthwise convolution has one group per channel, so each weight reads one channel") {
    const ModelPlan plan =
        plan_model({ConvLayer{.channels = 6}, ConvLayer{.channels = 12, .groups = 0}, FlattenLayer{}, LinearLayer{}},
                   mnist, 10, 1);
    CHECK(std::get<backend::ConvolutionShape>(plan.nodes[1].operation).groups == 6);
    CHECK(plan.tensors[2].shape == std::vector<std::int64_t>{12, 1, 3, 3});
    CHECK(plan.tensors[2].fan_in == 9);
}

TEST_CASE("plan: only the first layer with parameters does not compute an input gradient") {
    const ModelPlan plan = plan_model(
        {PoolLayer{}, ConvLayer{.channels = 3}, ConvLayer{.channels = 3}, FlattenLayer{}, LinearLayer{}}, mnist, 10, 1);

    CHECK_FALSE(std::get<backend::ConvolutionShape>(plan.nodes[1].operation).needs_input_grad);
    CHECK(std::get<backend::ConvolutionShape>(plan.nodes[2].operation).needs_input_grad);
    CHECK(std::get<backend::LinearShape>(plan.nodes[3].operation).needs_input_grad);
}

TEST_CASE("plan: repeat 0 removes a layer") {
    const ModelPlan plan = plan_model(tutorial(0), mnist, 10, 1);

    CHECK(plan.nodes.size() == 1);
    CHECK(plan.tensors[0].name == "1.weight");
}

TEST_CASE("plan: a kernel that does not fit is rejected; the message has the layer's index and the image size") {
    const ModelSpec spec{ConvLayer{}, PoolLayer{.repeat = 5}, FlattenLayer{}, LinearLayer{}};

    const std::string text = complaint(spec);

    CHECK(contains(text, "model[1] (max_pool)"));
    CHECK(contains(text, "1 x 1"));
}

TEST_CASE("plan: invalid layers are rejected; the message names the layer") {
    CHECK(contains(complaint({ConvLayer{.channels = 6, .groups = 2}, FlattenLayer{}, LinearLayer{}}),
                   "2 groups do not divide its 1 channels in and 6 out"));
    CHECK(contains(complaint({ConvLayer{.kernel = 3, .dilation = 14, .padding = 0}, FlattenLayer{}, LinearLayer{}}),
                   "kernel 29 does not fit"));
    CHECK(contains(complaint({ConvLayer{.kernel = 3, .dilation = 28}, FlattenLayer{}, LinearLayer{}}),
                   "outer places never see a pixel"));
    CHECK(complaint({ConvLayer{.kernel = 3, .dilation = 27}, FlattenLayer{}, LinearLayer{}}).empty());
    CHECK(contains(complaint({FlattenLayer{}, GlobalAveragePoolLayer{}, LinearLayer{}}), "(global_average_pool)"));
    CHECK(contains(complaint({FlattenLayer{}, LayerNormLayer{}, LinearLayer{}}), "model[1] (layer_norm): a flatten"));
    CHECK(contains(
        complaint({BlockLayer{.layers = {PoolLayer{}}, .join = Join::concatenate}, FlattenLayer{}, LinearLayer{}}),
        "height and width must stay"));
    CHECK(contains(complaint({FlattenLayer{}, LinearLayer{.activation = Activation::gelu}}), "activation is gelu"));
    CHECK(contains(complaint({ConvLayer{.channels = 0}, FlattenLayer{}, LinearLayer{}}), "model[0] (conv): channels"));
    CHECK(contains(complaint({ConvLayer{.kernel = 31, .padding = 0}, FlattenLayer{}, LinearLayer{}}), "kernel 31"));
    CHECK(contains(complaint({PoolLayer{.kind = Pooling::average, .padding = 2}, FlattenLayer{}, LinearLayer{}}),
                   "model[0] (average_pool): padding"));
    CHECK(contains(complaint({LinearLayer{}}), "model[0] (linear)"));
    CHECK(contains(complaint({LinearLayer{}}), "flatten"));
    CHECK(contains(complaint({FlattenLayer{}, ConvLayer{}, LinearLayer{}}), "model[1] (conv)"));
    CHECK(contains(complaint({FlattenLayer{}, PoolLayer{}, LinearLayer{}}), "model[1] (max_pool)"));
    CHECK(contains(complaint({FlattenLayer{}, LinearLayer{.repeat = -1}}), "model[1] (linear): repeat"));
    CHECK(contains(complaint({ConvLayer{}}), "gives 7840 numbers (28 x 28 x 10), but 10 are needed"));
    CHECK(contains(complaint({FlattenLayer{}, LinearLayer{.units = 9}}), "model[1] (linear)"));
    CHECK(contains(complaint({FlattenLayer{}, LinearLayer{.activation = Activation::relu}}), "activation is relu"));
    CHECK(contains(complaint({FlattenLayer{}, LinearLayer{}, ActivationLayer{Activation::tanh}}), "model[2] (tanh)"));
    CHECK(contains(complaint({}), "no layer"));
    CHECK(contains(complaint({PoolLayer{.kernel = 2}}, {2, 2, 10}), "no weights"));
    CHECK(contains(complaint({FlattenLayer{}, LinearLayer{.units = std::int64_t{1} << 40}}), "larger than any memory"));
}

TEST_CASE("plan: a convolution may be the last layer if its output has one number per class") {
    CHECK(complaint({ConvLayer{.channels = 10, .kernel = 28, .padding = 0}}).empty());
}

TEST_CASE("plan: the memory includes both arenas, the optimizer's state and the activations") {
    const ModelPlan plan = plan_model(tutorial(2), mnist, 10, 16);

    const std::int64_t activations = 16 * (784 + 2 * (7840 + 7840 + 10));
    CHECK(plan.bytes >= 4 * (4 * 79420 + activations));
    CHECK(plan.bytes <= 4 * (8 * 79420 + activations));
}

TEST_CASE("plan: a layer moves each of its tensors once per pass at least; bfloat16 takes half of the bytes") {
    ModelPlan plan = plan_model({ConvLayer{.channels = 8, .kernel = 3, .activation = backend::Activation::relu},
                                 ConvLayer{.channels = 8, .kernel = 3}, FlattenLayer{}, LinearLayer{}},
                                {5, 5, 2}, 3, 4);
    // Images of 4 · 5 · 5 · 2 floats, values of 4 · 5 · 5 · 8.
    constexpr std::int64_t image = 200, value = 800;
    // Forward reads the images and writes y. Backward reads the images, y and its gradient.
    CHECK(least_bytes(plan, plan.nodes[0]) == 4 * (image + value + image + 2 * value));
    // Backward reads x and the gradient of y, and writes the gradient of x.
    CHECK(least_bytes(plan, plan.nodes[1]) == 4 * (2 * value + 3 * value));

    plan.values[1].type = plan.values[2].type = backend::TensorType::bfloat16;

    CHECK(least_bytes(plan, plan.nodes[1]) == 2 * (2 * value + 3 * value));
}
