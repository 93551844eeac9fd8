#include "finch/base/format.hpp"
#include "finch/pytorch/network.hpp"

namespace finch::pytorch {
namespace {

constexpr const char* image_reader = R"(
def pixels_of(path):
    """Returns an image as pixels (height, width, channels), converted as by Finch's tools/images_to_hdf5.py."""
    try:
        with Image.open(path) as file:
            image = ImageOps.exif_transpose(file)
    except OSError as error:  # no file, or no image
        sys.exit(f"{{path}}: {{error}}")
    if image.mode[0] in "IF":
        {deep}
    if image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info:
        image = image.convert("RGBA")
        if image.getchannel("A").getextrema()[0] < 255:
            sys.exit(f"{{path}}: has transparent pixels; save it with a background")
    image = image.convert("RGB" if image.mode in ("P", "RGBA") else image.mode).convert("{mode}")
    image = image.resize((model.SHAPE[1], image.height)).resize(model.SHAPE[1::-1])  # Pillow 13 would choose the order
    return np.array(image, np.{type}).reshape(model.SHAPE)
)";

constexpr const char* array_reader = R"(
def pixels_of(path):
    """Returns an array (height, width, channels) that numpy.save() wrote."""
    try:
        return np.load(path).astype(np.{type}).reshape(model.SHAPE)
    except (OSError, ValueError) as error:  # no file, or no array of this shape
        sys.exit(f"{{path}}: {{error}}")
)";

constexpr const char* deep_refused = R"(sys.exit(f"{path}: has more than 8 bits in each channel; save it with 8"))";
constexpr const char* deep_kept =
    R"(image = image.resize((model.SHAPE[1], image.height)).resize(model.SHAPE[1::-1])
        return np.asarray(image, np.float32)[..., None].repeat(model.SHAPE[2], 2))";

constexpr const char* print_classes = R"(    _, probabilities = network.predict(pixels_of(path)[None])
    print(path)
    for probability, index in zip(*probabilities[0].topk(min(5, len(model.CLASSES)))):
        print(f"  {probability:6.1%}  {model.CLASSES[index]}")
)";
constexpr const char* print_values = R"(    values = network.predict(pixels_of(path)[None])[0]
    print(path, *(f"{value:.6g}" for value in values))
)";

}  // namespace

std::string example_source(const Network& network) {
    const std::int64_t channels = network.input.channels;
    const bool reads_images = channels == 1 || channels == 3;
    const char* const type = network.float_pixels ? "float32" : "uint8";
    const std::string reader = reads_images
                                   ? fmt::format(fmt::runtime(image_reader), fmt::arg("type", type),
                                                 fmt::arg("mode", channels == 1 ? "L" : "RGB"),
                                                 fmt::arg("deep", network.float_pixels ? deep_kept : deep_refused))
                                   : fmt::format(fmt::runtime(array_reader), fmt::arg("type", type));
    return fmt::format(R"(#!/usr/bin/env python3
"""example.py {}…: prints the {} of each file, according to the network in model.py.

Needs PyTorch, numpy{}.
"""
import sys

try:
    import numpy as np
{}
    import model
except ModuleNotFoundError as error:
    sys.exit(f"example.py needs the Python package {{error.name}}, which {{sys.executable}} lacks")

{}

if len(sys.argv) == 1:
    sys.exit(__doc__)
network = model.load()
for path in sys.argv[1:]:
{})",
                       reads_images ? "IMAGE" : "ARRAY.npy",
                       network.classifies ? "most probable classes" : "predicted numbers",
                       reads_images ? " and Pillow" : "", reads_images ? "    from PIL import Image, ImageOps\n" : "",
                       reader, network.classifies ? print_classes : print_values);
}

}  // namespace finch::pytorch
