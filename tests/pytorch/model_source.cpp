// Compares model.py with the source that a person would write. tests/end_to_end/exported_network.py runs it.
#include "finch/base/enum_words.hpp"
#include "finch/base/format.hpp"
#include "finch/pytorch/network.hpp"

#include "pytorch/networks.hpp"

#include <doctest/doctest.h>
#include <map>
#include <string>

using namespace finch;
using namespace finch::nn;
using backend::Activation;

namespace {

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// Returns the lines of the network's modules, without indentation.
std::string modules_of(const ModelSpec& layers, SampleShape input) {
    const std::string source = pytorch::model_source(
        {.title = "", .layers = layers, .input = input, .outputs = 10, .mean = {0}, .deviation = {1}});
    const std::string begin = "class Network(nn.Sequential):\n    def __init__(self):\n        super().__init__(\n";
    const std::size_t first = source.find(begin) + begin.size();
    std::string lines = source.substr(first, source.find("        )\n", first) - first);
    for (std::size_t at = 0; (at = lines.find("            ", at)) != std::string::npos;) {
        lines.erase(at, 12);
    }
    return lines;
}

/// Returns the classes before the class Network.
std::string classes_of(const ModelSpec& layers, SampleShape input) {
    const std::string source = pytorch::model_source(
        {.title = "", .layers = layers, .input = input, .outputs = 10, .mean = {0}, .deviation = {1}});
    const std::size_t first = source.find("\n\n\nclass ") + 3;
    return source.substr(first, source.find("class Network(") - first);
}

}  // namespace

TEST_CASE("model.py begins with a class of plain torch.nn") {
    pytorch::Network network = test::linear_network();
    network.classes = {"a \"cat\"", "größe\\"};

    const std::string source = pytorch::model_source(network);

    CHECK(has(source, "        if images.dtype != torch.uint8 or images.shape[1:] != SHAPE:\n"));
    CHECK(source.substr(0, source.find("\n    def _apply")) == R"("""A network.

    import model
    network = model.load()  # with the weights in model.pt beside this file
    classes, probabilities = network.predict(images)  # uint8 of shape (N, 1, 2, 1)

The state dict has the names of Finch's models/best.h5, and the CRC-32C 1b041845.
"""
import importlib.machinery
import pathlib

import torch
from torch import nn

CLASSES = ["a \"cat\"", "größe\\"]
SHAPE = (1, 2, 1)  # of an image: height, width, channels
MEAN = [0.5]
DEVIATION = [0.25]


class Network(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Flatten(),
            nn.Linear(1 * 1 * 2, 2),  # 2
        )
        self.register_buffer("mean", torch.tensor(MEAN, dtype=torch.float32).view(-1, 1, 1), persistent=False)
        self.register_buffer("deviation", torch.tensor(DEVIATION, dtype=torch.float32).view(-1, 1, 1), persistent=False)
)");
}

TEST_CASE("model.py: regression gives values, floating-point pixels are not divided, long lists are wrapped") {
    pytorch::Network network = test::linear_network();
    network.float_pixels = true;
    CHECK(has(pytorch::model_source(network), "CLASSES = range(2)  # the data do not name the classes\n"));
    CHECK(has(pytorch::model_source(network), "permute(0, 3, 1, 2).float()\n"));
    CHECK(has(pytorch::model_source(network), "# float32 of shape (N, 1, 2, 1)\n"));

    network.classes.assign(100, "class");
    const std::string source = pytorch::model_source(network);
    CHECK(has(source, "CLASSES = [\"class\", \"class\","));
    CHECK(has(source, ",\n           \"class\","));
    for (std::size_t begin = 0, end = 0; (end = source.find('\n', begin)) != std::string::npos; begin = end + 1) {
        CHECK(end - begin <= 120);
    }

    network.classifies = false;
    CHECK_FALSE(has(pytorch::model_source(network), "CLASSES"));
    CHECK_FALSE(has(pytorch::model_source(network), "softmax"));
    CHECK(has(pytorch::model_source(network), "        if not images.is_floating_point() or images.shape"));
    CHECK(has(pytorch::model_source(network), "    values = network.predict(images)"));
}

TEST_CASE("layers: PyTorch's modules with the arguments that are not PyTorch's defaults") {
    const ModelSpec layers{ConvLayer{.channels = 6, .kernel = 3, .activation = Activation::relu},
                           ConvLayer{.channels = 6, .kernel = 4},
                           ConvLayer{.channels = 8, .kernel = 3, .stride = 2, .groups = 2, .padding = 0},
                           ConvLayer{.channels = 16, .kernel = 3, .dilation = 2, .groups = 0},
                           BatchNormLayer{},
                           BatchNormLayer{.momentum = 0.5, .epsilon = 0.001, .activation = Activation::tanh},
                           LayerNormLayer{.activation = Activation::gelu},
                           ActivationLayer{Activation::none},
                           ActivationLayer{Activation::silu},
                           DropoutLayer{0.25},
                           PoolLayer{},
                           PoolLayer{.kind = backend::Pooling::average, .kernel = 3, .stride = 1, .padding = 1},
                           GlobalAveragePoolLayer{},
                           FlattenLayer{},
                           LinearLayer{.units = 5, .activation = Activation::leaky_relu},
                           LayerNormLayer{.epsilon = 0.1},
                           BatchNormLayer{},
                           LinearLayer{}};

    CHECK(modules_of(layers, {17, 16, 3}) == R"(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(),  # 6 x 17 x 16
PaddedConv2d(6, 6, 4, padding=1),
nn.Conv2d(6, 8, 3, stride=2, groups=2),  # 8 x 8 x 7
nn.Conv2d(8, 16, 3, padding=2, dilation=2, groups=8),  # 16 x 8 x 7
nn.BatchNorm2d(16),
nn.BatchNorm2d(16, eps=0.001, momentum=0.5), nn.Tanh(),
nn.GroupNorm(1, 16), nn.GELU(),
nn.SiLU(),
nn.Dropout(0.25),
nn.MaxPool2d(2),  # 16 x 4 x 3
nn.AvgPool2d(3, stride=1, padding=1),
nn.AdaptiveAvgPool2d(1),  # 16
nn.Flatten(),
nn.Linear(16, 5), nn.LeakyReLU(),  # 5
nn.LayerNorm(5, eps=0.1),
nn.BatchNorm1d(5),
nn.Linear(5, 10),  # 10
)");
    CHECK(has(classes_of(layers, {17, 16, 3}), "return super().forward(nn.functional.pad(x, (0, 1, 0, 1)))\n"));
}

TEST_CASE("layers: equal layers in a row become one line from four on") {
    const auto convs = [](std::int64_t repeat) {
        return modules_of({ConvLayer{.channels = 4, .activation = Activation::relu, .repeat = repeat}, PoolLayer{},
                           FlattenLayer{}, LinearLayer{}},
                          {4, 4, 1});
    };

    CHECK(convs(0) == "nn.MaxPool2d(2),  # 1 x 2 x 2\nnn.Flatten(),\nnn.Linear(1 * 2 * 2, 10),  # 10\n");
    CHECK(has(convs(4),
              "nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(),  # 4 x 4 x 4\n"
              "nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(),\n"
              "nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(),\n"
              "nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(),\n"
              "nn.MaxPool2d(2),"));
    CHECK(has(convs(6),
              "nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(),  # 4 x 4 x 4\n"
              "*(module for _ in range(5) for module in (nn.Conv2d(4, 4, 3, padding=1), nn.ReLU())),\n"
              "nn.MaxPool2d(2),"));
}

TEST_CASE("layers: each activation is PyTorch's module and function of the same name") {
    const std::map<std::string, std::pair<std::string, std::string>> names{
        {"relu", {"ReLU", "torch.relu"}},         {"sigmoid", {"Sigmoid", "torch.sigmoid"}},
        {"tanh", {"Tanh", "torch.tanh"}},         {"leaky_relu", {"LeakyReLU", "nn.functional.leaky_relu"}},
        {"gelu", {"GELU", "nn.functional.gelu"}}, {"silu", {"SiLU", "nn.functional.silu"}}};

    for (const std::string& word : all_words<Activation>()) {
        if (word == "none") {
            continue;
        }
        const Activation activation = *enumerator<Activation>(word);
        const ModelSpec layers{BlockLayer{.layers = {ActivationLayer{activation}}, .activation = activation},
                               FlattenLayer{}, LinearLayer{}};
        const std::string source = classes_of(layers, {2, 2, 1});
        CHECK(has(source, fmt::format("            nn.{}(),\n", names.at(word).first)));
        CHECK(has(source, fmt::format("return {}(self.body(x) + self.shortcut(x))\n", names.at(word).second)));
    }
}

TEST_CASE("blocks: repeats with other numbers of channels share a class") {
    const BlockLayer residual{.layers = {ConvLayer{.channels = 8}, BatchNormLayer{.activation = Activation::relu},
                                         ConvLayer{.channels = 8, .groups = 8}},
                              .activation = Activation::relu,
                              .repeat = 5};
    const BlockLayer smaller{.layers = {ConvLayer{.channels = 12, .stride = 2}}};
    const BlockLayer dense{
        .layers = {BatchNormLayer{}, ConvLayer{.channels = 4}}, .join = Join::concatenate, .repeat = 3};
    const BlockLayer plain{.layers = {DropoutLayer{0.5}}, .residual = false};
    const ModelSpec layers{ConvLayer{.channels = 2}, residual,       smaller,      dense, plain,
                           GlobalAveragePoolLayer{}, FlattenLayer{}, LinearLayer{}};

    CHECK(modules_of(layers, {8, 8, 1}) == R"(nn.Conv2d(1, 2, 3, padding=1),  # 2 x 8 x 8
ResidualBlock(2),  # 8 x 8 x 8
*(ResidualBlock(8) for _ in range(4)),
ResidualBlock2(8),  # 12 x 4 x 4
DenseBlock(12),  # 16 x 4 x 4
DenseBlock(16),  # 20 x 4 x 4
DenseBlock(20),  # 24 x 4 x 4
Block(),
nn.AdaptiveAvgPool2d(1),  # 24
nn.Flatten(),
nn.Linear(24, 10),  # 10
)");
    CHECK(classes_of(layers, {8, 8, 1}) == R"(class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, 8, 3, padding=1),
            nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 8, 3, padding=1, groups=8),
        )
        self.shortcut = nn.Identity() if channels == 8 else nn.Conv2d(channels, 8, 1)

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


class ResidualBlock2(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, 12, 3, stride=2, padding=1),
        )
        self.shortcut = nn.Conv2d(channels, 12, 1, stride=2)

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


class DenseBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.Conv2d(channels, 4, 3, padding=1),
        )

    def forward(self, x):
        return torch.cat([x, self.body(x)], 1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Dropout(0.5),
        )

    def forward(self, x):
        return self.body(x)


)");
}

TEST_CASE("blocks: within blocks, with a changing number of channels") {
    const BlockLayer inner{.layers = {ConvLayer{.channels = 4, .groups = 0}}, .join = Join::concatenate, .repeat = 2};
    const BlockLayer outer{.layers = {inner, ConvLayer{.channels = 4}}};
    const ModelSpec layers{ConvLayer{.channels = 4}, outer, GlobalAveragePoolLayer{}, FlattenLayer{}, LinearLayer{}};
    CHECK_THROWS_AS(classes_of(layers, {8, 8, 1}), ModelError);  // 8 groups for 4 channels

    const BlockLayer mixed{
        .layers = {BlockLayer{.layers = {ConvLayer{.channels = 4}}, .join = Join::concatenate}, BatchNormLayer{},
                   ConvLayer{.channels = 6}, ConvLayer{.channels = 6, .groups = 0}},
        .repeat = 2};
    const ModelSpec valid{mixed, GlobalAveragePoolLayer{}, FlattenLayer{}, LinearLayer{}};

    CHECK(has(classes_of(valid, {8, 8, 3}), R"(            DenseBlock(channels),
            nn.BatchNorm2d(channels + 4),
            nn.Conv2d(channels + 4, 6, 3, padding=1),
            nn.Conv2d(6, 6, 3, padding=1, groups=6),
        )
        self.shortcut = nn.Identity() if channels == 6 else nn.Conv2d(channels, 6, 1)
)"));
    CHECK(has(modules_of(valid, {8, 8, 3}), "ResidualBlock(3),  # 6 x 8 x 8\nResidualBlock(6),\n"));
}

TEST_CASE("flatten: linear layers without one, one in a block, and outputs that are still images") {
    const ModelSpec pixel{GlobalAveragePoolLayer{}, LinearLayer{.units = 4}, BatchNormLayer{},
                          ConvLayer{.channels = 10, .kernel = 1}};
    CHECK(modules_of(pixel, {3, 3, 2}) == R"(nn.AdaptiveAvgPool2d(1),  # 2
PixelLinear(2, 4),  # 4
nn.BatchNorm2d(4),
nn.Conv2d(4, 10, 1),  # 10
)");
    const std::string source = pytorch::model_source(
        {.title = "", .layers = pixel, .input = {3, 3, 2}, .outputs = 10, .mean = {0, 0}, .deviation = {1, 1}});
    CHECK(has(source, "return super().forward(pixels).flatten(1)\n"));

    const BlockLayer flat{.layers = {FlattenLayer{}}};
    const BlockLayer linear{.layers = {LinearLayer{.units = 5}}, .repeat = 2};
    const ModelSpec layers{flat, linear, LinearLayer{}};
    CHECK(has(classes_of(layers, {3, 3, 2}), "        self.shortcut = nn.Flatten()\n"));
    CHECK(has(classes_of(layers, {3, 3, 2}),
              "            nn.Linear(channels * 3 * 3, 5),\n        )\n"
              "        self.shortcut = nn.Linear(channels * 3 * 3, 5)\n"));
    CHECK(has(classes_of(layers, {3, 3, 2}),
              "            nn.Linear(channels, 5),\n        )\n"
              "        self.shortcut = nn.Identity() if channels == 5 else nn.Linear(channels, 5)\n"));
    CHECK(modules_of(layers, {3, 3, 2}) ==
          "ResidualBlock(),\nResidualBlock2(2),  # 5\nResidualBlock3(5),\nnn.Linear(5, 10),  # 10\n");
}
