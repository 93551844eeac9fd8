#include "finch/base/bytes.hpp"
#include "finch/base/format.hpp"
#include "finch/pytorch/network.hpp"
#include "finch/pytorch/state_dict.hpp"

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

The state dict has the names of Finch's models/best.h5, and the CRC-32C {:08x}.
"""
import importlib.machinery
import pathlib

import torch
from torch import nn

{}SHAPE = ({}, {}, {})  # of an image: height, width, channels
{}{}

)",
                       escaped(network.title), network.classifies ? "classes, probabilities" : "values",
                       network.float_pixels ? "float32" : "uint8", input.height, input.width, input.channels,
                       crc32c(safetensors(network.weights)), network.classifies ? classes_line(network) : "",
                       input.height, input.width, input.channels, list("MEAN", network.mean),
                       list("DEVIATION", network.deviation));
}

std::string methods(const Network& network, bool is_flat) {
    return fmt::format(
        R"(
    def forward(self, images):
        """Returns the {0} (N, {1}) of images (N, height, width, channels)."""
        pixels = images.permute(0, 3, 1, 2).float(){2}
        pixels = ((pixels - self.mean) / self.deviation).to(next(self.parameters(), pixels).dtype)
        return super().forward(pixels){3}

    @torch.no_grad()
    def predict(self, images):
        """Returns the {4}."""
        images = torch.as_tensor(images)
        if {5} or images.shape[1:] != SHAPE:
            raise TypeError("predict() takes {6} of shape (N, {8}, {9}, {10}), "
                            f"not {{images.dtype}} of shape {{tuple(images.shape)}}")
        outputs = torch.cat([self(part).float() for part in images.to(self.mean.device).split(256)])
        return {7}
)",
        network.classifies ? "logits" : "values", network.outputs, network.float_pixels ? "" : " / 255",
        is_flat ? "" : ".flatten(1)",
        network.classifies ? "most probable class of each image, and the probabilities (N, classes)"
                           : "values (N, numbers) of the images",
        network.float_pixels ? "not images.is_floating_point()" : "images.dtype != torch.uint8",
        network.float_pixels ? "floats like the data" : "bytes (uint8, not divided by 255)",
        network.classifies ? "[CLASSES[index] for index in outputs.argmax(1)], outputs.softmax(1)" : "outputs",
        network.input.height, network.input.width, network.input.channels);
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

    def _apply(self, convert, **options):  # half() and bfloat16() leave the normalisation in float32
        device = super()._apply(convert, **options).mean.device
        for name, values in ("mean", MEAN), ("deviation", DEVIATION):
            setattr(self, name, torch.tensor(values, dtype=torch.float32, device=device).view(-1, 1, 1))
        return self
)" + methods(network, layers.is_flat()) +
           R"(

def load(folder=pathlib.Path(__file__).parent):
    """Returns the trained network, ready for predict()."""
    here = pathlib.Path(__file__)
    found = importlib.machinery.PathFinder.find_spec("model") if __name__ == "model" else None
    for other in pathlib.Path(folder) / "model.py", pathlib.Path(found and found.origin or here):
        if other.with_suffix(".pt").exists() and other.exists() and other.read_bytes() != here.read_bytes():
            raise ImportError(f"{other} is another network than {here}, which Python has imported as {__name__}; "
                              "from the folder above both, import each as FOLDER.model")
    network = Network()
    network.load_state_dict(torch.load(pathlib.Path(folder) / "model.pt", map_location="cpu", weights_only=True))
    return network.eval()
)";
}

}  // namespace finch::pytorch
