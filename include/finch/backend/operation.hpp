#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace finch::backend {

enum class Activation { none, relu, sigmoid, tanh };
constexpr std::array<std::string_view, 4> words_of(Activation) {
    return {"none", "relu", "sigmoid", "tanh"};
}

/// In what numbers products may be computed; sums and memory are float32 in any case. It permits, it does not demand: a
/// device may be more exact. tf32: products of numbers rounded to 10 bits of mantissa. bfloat16: to 7 bits.
enum class Precision { float32, tf32, bfloat16 };
constexpr std::array<std::string_view, 3> words_of(Precision) {
    return {"float32", "tf32", "bfloat16"};
}

/// A convolution with bias and activation over x (batch, height, width, channels_in), NHWC.
/// Parameters, canonical: weight (channels_out, channels_in, kernel, kernel), then bias (channels_out).
struct ConvolutionShape {
    std::int64_t batch = 1;
    std::int64_t height = 1;
    std::int64_t width = 1;
    std::int64_t channels_in = 1;
    std::int64_t channels_out = 1;
    std::int64_t kernel = 1;
    std::int64_t stride = 1;
    std::int64_t padding_before = 0;  ///< rows above and columns left
    std::int64_t padding_after = 0;   ///< rows below and columns right
    Activation activation = Activation::none;
    bool needs_input_grad = true;
    Precision precision = Precision::float32;
    bool deterministic = true;  ///< the same bits each time
    auto operator<=>(const ConvolutionShape&) const = default;

    [[nodiscard]] std::int64_t height_out() const noexcept {
        return (height + padding_before + padding_after - kernel) / stride + 1;
    }
    [[nodiscard]] std::int64_t width_out() const noexcept {
        return (width + padding_before + padding_after - kernel) / stride + 1;
    }
};

enum class Pooling { max, average };

/// Pooling over x (batch, height, width, channels). No parameters. Average counts padding as PyTorch does (as zeros).
struct PoolingShape {
    Pooling kind = Pooling::max;
    std::int64_t batch = 1;
    std::int64_t height = 1;
    std::int64_t width = 1;
    std::int64_t channels = 1;
    std::int64_t kernel = 2;
    std::int64_t stride = 2;
    std::int64_t padding = 0;
    auto operator<=>(const PoolingShape&) const = default;

    [[nodiscard]] std::int64_t height_out() const noexcept { return (height + 2 * padding - kernel) / stride + 1; }
    [[nodiscard]] std::int64_t width_out() const noexcept { return (width + 2 * padding - kernel) / stride + 1; }
};

/// A linear layer with bias and activation over x (batch, height, width, channels) in NHWC, or (batch, features) with
/// height = width = 1. Parameters, canonical: weight (units, channels·height·width) whose columns are in CHW order,
/// then bias (units).
struct LinearShape {
    std::int64_t batch = 1;
    std::int64_t height = 1;
    std::int64_t width = 1;
    std::int64_t channels = 1;
    std::int64_t units = 1;
    Activation activation = Activation::none;
    bool needs_input_grad = true;
    Precision precision = Precision::float32;
    auto operator<=>(const LinearShape&) const = default;
};

/// An activation by itself over `count` floats per batch. No parameters.
struct ActivationShape {
    std::int64_t count = 1;  ///< batch included
    Activation activation = Activation::relu;
    auto operator<=>(const ActivationShape&) const = default;
};

/// A planned operation with its own packed copies of the parameters and its own scratch memory.
/// All pointers are to memory of the device that made it.
class Operation {
public:
    virtual ~Operation() = default;

    /// Takes the canonical parameters; called once after each change of them. Nothing where there are none.
    virtual void pack(const float* parameters) = 0;
    /// y = f(x).
    virtual void forward(const float* x, float* y) = 0;
    /// From the gradient of y (which may be overwritten) to those of x (`grad_x`, ignored
    /// where the shape needs none; overwritten) and of the parameters (`grad_parameters`, canonical, overwritten).
    virtual void backward(const float* x, const float* y, float* grad_y, float* grad_x, float* grad_parameters) = 0;
    /// The library's names of what it runs, for logs and tests: "jit:avx512_core, brgconv…".
    [[nodiscard]] virtual std::string implementation() const = 0;
};

}  // namespace finch::backend
