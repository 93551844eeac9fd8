#pragma once

#include "finch/backend/operation.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace finch::nn {

/// Layers as the configuration lists them, every gene already replaced by its value.
struct ConvLayer {
    std::int64_t channels = 10;
    std::int64_t kernel = 3;
    std::int64_t stride = 1;
    std::int64_t dilation = 1;  ///< pixels from one place of the kernel to the next
    std::int64_t groups = 1;    ///< apart from one another; 0: each channel by itself (depthwise)
    /// Nothing: `same`, as many as the kernel reaches beyond one pixel, so that a stride divides the size, rounded up;
    /// one more after than before where that is odd.
    std::optional<std::int64_t> padding = {};
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
/// The mean of each channel (torch.nn.AdaptiveAvgPool2d(1)).
struct GlobalAveragePoolLayer {};
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
/// Layer normalisation of each sample (torch.nn.GroupNorm with one group, LayerNorm after a linear layer).
struct LayerNormLayer {
    double epsilon = 1e-5;
    backend::Activation activation = backend::Activation::none;
};
struct DropoutLayer {
    double rate = 0.5;
};
struct Layer;
/// How a residual block takes its input up: activation(body(x) + shortcut(x)), where the shortcut is x itself, or where
/// the body changes the shape a convolution with a kernel of 1 (after a flatten: a linear layer); or
/// activation(concatenate(x, body(x))) by channels.
enum class Join { add, concatenate };
constexpr std::array<std::string_view, 2> words_of(Join) {
    return {"add", "concatenate"};
}

/// Layers as one module with a body and, where `residual`, a shortcut.
struct BlockLayer {
    std::vector<Layer> layers;
    bool residual = true;
    Join join = Join::add;
    backend::Activation activation = backend::Activation::none;
    std::int64_t repeat = 1;
};

struct Layer : std::variant<ConvLayer, PoolLayer, GlobalAveragePoolLayer, FlattenLayer, LinearLayer, ActivationLayer,
                            BatchNormLayer, LayerNormLayer, DropoutLayer, BlockLayer> {
    using variant::variant;
};
using ModelSpec = std::vector<Layer>;

}  // namespace finch::nn
