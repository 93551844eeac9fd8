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

/// The layers that the configuration lists, with every gene replaced by its value.
struct ConvLayer {
    std::int64_t channels = 10;
    std::int64_t kernel = 3;
    std::int64_t stride = 1;
    std::int64_t dilation = 1;  ///< distance between neighbouring kernel elements, in pixels
    std::int64_t groups = 1;    ///< channel groups that are convolved separately; 0: one per channel (depthwise)
    /// Pixels of padding on each side of the image. If empty, the padding is `same`: dilation · (kernel − 1) pixels on
    /// two opposite sides together. With `same`, the output size is the input size divided by the stride, rounded up.
    /// If the number of padding pixels is odd, the bottom and right sides get one pixel more.
    std::optional<std::int64_t> padding = {};
    backend::Activation activation = backend::Activation::none;
    std::int64_t repeat = 1;  ///< number of copies; 0: the layer is left out
};
struct PoolLayer {
    backend::Pooling kind = backend::Pooling::max;
    std::int64_t kernel = 2;
    std::optional<std::int64_t> stride = {};  ///< empty: equal to the kernel size
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

/// Batch normalisation over the batch of all ranks of the worker (torch.nn.BatchNorm2d, or BatchNorm1d after a linear
/// layer).
struct BatchNormLayer {
    double momentum = 0.1;
    double epsilon = 1e-5;
    backend::Activation activation = backend::Activation::none;
};
/// Layer normalisation of each sample (torch.nn.GroupNorm with one group, or LayerNorm after a linear layer).
struct LayerNormLayer {
    double epsilon = 1e-5;
    backend::Activation activation = backend::Activation::none;
};
struct DropoutLayer {
    double rate = 0.5;
};
struct Layer;
/// The way in which a residual block combines its input x with the output of its body. `add` computes
/// activation(body(x) + shortcut(x)). The shortcut is x itself if the body keeps the shape of x. If the body changes
/// the shape, the shortcut is a convolution with a kernel of 1, or a linear layer after a flatten. `concatenate`
/// computes activation(concatenate(x, body(x))) along the channels.
enum class Join { add, concatenate };
constexpr std::array<std::string_view, 2> words_of(Join) {
    return {"add", "concatenate"};
}

/// A block of layers: one module with a body and, if `residual`, a shortcut.
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
