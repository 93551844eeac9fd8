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

/// Batch normalisation over the whole worker's batch (torch.nn.BatchNorm2d, BatchNorm1d after a linear layer).
struct BatchNormLayer {
    double momentum = 0.1;
    double epsilon = 1e-5;
    backend::Activation activation = backend::Activation::none;
};
struct DropoutLayer {
    double rate = 0.5;
};
struct Layer;
/// Layers as one module with a body and, where `residual`, a shortcut: activation(body(x) + shortcut(x)). The shortcut
/// is x itself, or where the body changes the shape a convolution with a kernel of 1 (after a flatten: a linear layer).
struct BlockLayer {
    std::vector<Layer> layers;
    bool residual = true;
    backend::Activation activation = backend::Activation::none;
    std::int64_t repeat = 1;
};

struct Layer : std::variant<ConvLayer, PoolLayer, FlattenLayer, LinearLayer, ActivationLayer, BatchNormLayer,
                            DropoutLayer, BlockLayer> {
    using variant::variant;
};
using ModelSpec = std::vector<Layer>;

}  // namespace finch::nn
