#include "finch/base/format.hpp"
#include "finch/pytorch/network.hpp"

#include "layers.hpp"

#include <cstddef>

namespace finch::pytorch {
namespace {

constexpr std::size_t widest = 110;  ///< columns

/// Returns `text` with escapes, for a Python string in double quotes. `text` must be printable.
std::string escaped(const std::string& text) {
    std::string out;
    for (const char letter : text) {
        out += letter == '"' || letter == '\\' ? "\\" : "";
        out += letter;
    }
    return out;
}

/// Returns "name = [a, b]", in several lines if there are many items.
std::string list(const std::string& name, const std::vector<std::string>& items) {
    std::string line = name + " = [";
    const std::string indent(line.size(), ' ');
    std::string text;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const std::string item = items[i] + (i + 1 < items.size() ? "," : "]");
        if (i > 0 && line.size() + item.size() >= widest) {
            text += line + "\n";
            line = indent + item;
        } else {
            line += (i > 0 ? " " : "") + item;
        }
    }
    return text + line + "\n";
}

std::string list(const std::string& name, const std::vector<double>& numbers) {
    std::vector<std::string> items;
    for (const double number : numbers) {
        items.push_back(fmt::format("{}", number));
    }
    return list(name, items);
}

std::string classes_line(const Network& network) {
    if (network.classes.empty()) {
        return fmt::format("CLASSES = range({})  # the data do not name the classes\n", network.outputs);
    }
    std::vector<std::string> items;
    for (const std::string& name : network.classes) {
        items.push_back('"' + escaped(name) + '"');
    }
    return list("CLASSES", items);
}

std::string head(const Network& network) {
    const nn::SampleShape& input = network.input;
    return fmt::format(R"("""{}

    import model
    network = model.load()  # with the weights in model.pt beside this file
    {} = network.predict(images)  # {} of shape (N, {}, {}, {})

The state dict has the names of Finch's models/best.h5.
"""
import pathlib

import torch
from torch import nn

{}SHAPE = ({}, {}, {})  # of an image: height, width, channels
{}{}

)",
                       escaped(network.title), network.classifies ? "classes, probabilities" : "values",
                       network.float_pixels ? "float32" : "uint8", input.height, input.width, input.channels,
                       network.classifies ? classes_line(network) : "", input.height, input.width, input.channels,
                       list("MEAN", network.mean), list("DEVIATION", network.deviation));
}

std::string methods(const Network& network, bool is_flat) {
    const std::string scale = network.float_pixels ? "" : " / 255";
    const std::string flatten = is_flat ? "" : ".flatten(1)";
    const std::string meaning = network.classifies ? "logits" : "values";
    std::string text = fmt::format(R"(
    def forward(self, images):
        """Returns the {0} (N, {1}) of images (N, height, width, channels)."""
        pixels = images.permute(0, 3, 1, 2).float(){2}
        return super().forward((pixels - self.mean) / self.deviation){3}

    @torch.no_grad()
    def predict(self, images):
)",
                                   meaning, network.outputs, scale, flatten);
    text += network.classifies
                ? R"(        """Returns the most probable class of each image, and the probabilities (N, classes)."""
        parts = torch.as_tensor(images).to(self.mean.device).split(256)
        probabilities = torch.cat([self(part).softmax(1) for part in parts])
        return [CLASSES[index] for index in probabilities.argmax(1)], probabilities
)"
                : R"(        """Returns the values (N, numbers) of the images."""
        parts = torch.as_tensor(images).to(self.mean.device).split(256)
        return torch.cat([self(part) for part in parts])
)";
    return text;
}

}  // namespace

std::string model_source(const Network& network) {
    const Layers layers(network.layers, network.input, network.outputs);
    return head(network) + layers.classes() + R"(class Network(nn.Sequential):
    def __init__(self):
        super().__init__(
)" + layers.modules() +
           R"(        )
        self.register_buffer("mean", torch.tensor(MEAN, dtype=torch.float32).view(-1, 1, 1), persistent=False)
        self.register_buffer("deviation", torch.tensor(DEVIATION, dtype=torch.float32).view(-1, 1, 1), persistent=False)
)" + methods(network, layers.is_flat()) +
           R"(

def load(folder=pathlib.Path(__file__).parent):
    """Returns the trained network, ready for predict()."""
    network = Network()
    network.load_state_dict(torch.load(pathlib.Path(folder) / "model.pt", map_location="cpu", weights_only=True))
    return network.eval()
)";
}

}  // namespace finch::pytorch
