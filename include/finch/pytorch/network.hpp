#pragma once

#include "finch/base/named_array.hpp"
#include "finch/nn/plan.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// A trained network as files that PyTorch reads.
namespace finch::pytorch {

struct Network {
    std::string title;  ///< one line: the individual and the run
    nn::ModelSpec layers;
    nn::SampleShape input;
    std::int64_t outputs = 0;
    bool classifies = true;              ///< the outputs are logits of classes, otherwise values
    bool float_pixels = false;           ///< pixels are floats, otherwise bytes, which are divided by 255
    std::vector<double> mean{};          ///< of each channel
    std::vector<double> deviation{};     ///< of each channel
    std::vector<std::string> classes{};  ///< class names; empty: the data have none
    NamedArrays weights{};               ///< PyTorch's state dict
};

/// Returns the source of model.py: the network as an nn.Sequential, whose state dict has the names of `weights`.
[[nodiscard]] std::string model_source(const Network& network);
/// Returns the source of example.py, which applies model.py to files of images.
[[nodiscard]] std::string example_source(const Network& network);

/// Creates `folder` with model.py, example.py, model.safetensors and model.pt. The folder is there with all files or
/// not at all. Throws ConfigError if `folder` exists and is not empty, and StorageError.
void write_folder(const std::filesystem::path& folder, const Network& network);

}  // namespace finch::pytorch
