#pragma once

#include "finch/backend/operation.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace finch::nn {

/// Layers as the configuration lists them, every gene already replaced by its value.
struct ConvLayer {
    std::int64_t channels = 10;
    std::int64_t kernel = 3;
    std::int64_t stride = 1;
    std::optional<std::int64_t> padding =
        {};  ///< nothing: `same` (needs stride 1); for an even kernel one more after than before
    backend::Activation activation = backend::Activation::none;
    std::int64_t repeat = 1;  ///< 0: the layer is left out
};
struct PoolLayer {
    backend::Pooling kind = backend::Pooling::max;
    std::int64_t kernel = 2;
    std::optional<std::int64_t> stride = {};  ///< nothing: the kernel
    std::int64_t padding = 0;
    std::int64_t repeat = 1;
};
struct FlattenLayer {};
struct LinearLayer {
    std::int64_t units = 0;  ///< 0: the number of classes
    backend::Activation activation = backend::Activation::none;
    std::int64_t repeat = 1;
};
struct ActivationLayer {
    backend::Activation activation = backend::Activation::relu;
};

using Layer = std::variant<ConvLayer, PoolLayer, FlattenLayer, LinearLayer, ActivationLayer>;
using ModelSpec = std::vector<Layer>;

/// One sample: (height, width, channels).
struct SampleShape {
    std::int64_t height = 1;
    std::int64_t width = 1;
    std::int64_t channels = 1;
    [[nodiscard]] std::int64_t size() const noexcept { return height * width * channels; }
    bool operator==(const SampleShape&) const = default;
};

/// A tensor of the model under PyTorch's name: "0.weight" (out, in, kernel, kernel), "0.bias" (out), where the number
/// counts the modules of the equivalent nn.Sequential in which every conv, activation, pool, flatten and linear is one
/// module.
struct TensorInfo {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t offset = 0;  ///< in floats, into both arenas
    std::int64_t size = 0;    ///< in floats
    std::int64_t fan_in = 1;  ///< of its layer: initial values are uniform within ±1/√fan_in
};

/// One operation with the shapes before and after it.
struct PlannedLayer {
    std::variant<backend::ConvolutionShape, backend::PoolingShape, backend::LinearShape, backend::ActivationShape>
        shape;
    SampleShape in;
    SampleShape out;
    std::int64_t parameters_offset = 0;  ///< into the arenas
    std::int64_t parameters = 0;         ///< weight, then bias
};

/// A model with every shape known, for one batch size. `layers` in forward order; in the arenas the last layer comes
/// first, in the order in which backward makes the gradients.
struct ModelPlan {
    std::vector<PlannedLayer> layers;
    std::vector<TensorInfo> tensors;  ///< in PyTorch's order (first layer first)
    SampleShape input;
    std::int64_t classes = 0;
    std::int64_t batch = 0;
    std::int64_t parameters = 0;  ///< floats of one arena
    /// Bytes that a training of this model takes on one rank: arenas, optimizer's state, packed weights, activations
    /// and their gradients.
    std::int64_t bytes = 0;
    /// Bytes of the host that it takes besides, now and then: while a snapshot is made, or gone on from.
    std::int64_t snapshot_bytes = 0;
};

/// How a model's operations compute.
struct Numerics {
    backend::Precision precision = backend::Precision::float32;
    bool deterministic = true;  ///< the same bits each time
};

/// Infers and checks every shape. Throws ConfigError that names the layer by its place in the list ("model[2]
/// (max_pool)"), what is wrong and what would be right. The last layer must give (1, 1, classes) without an activation.
[[nodiscard]] ModelPlan plan_model(const ModelSpec& spec, SampleShape input, std::int64_t classes, std::int64_t batch,
                                   Numerics numerics = {});

}  // namespace finch::nn
