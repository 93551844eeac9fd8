#pragma once

#include "finch/backend/lap_timer.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace finch::backend {

/// torch.nn's, with their defaults: leaky_relu has a slope of 0.01, gelu is exact (by erf).
enum class Activation { none, relu, sigmoid, tanh, leaky_relu, gelu, silu };
constexpr std::array<std::string_view, 7> words_of(Activation) {
    return {"none", "relu", "sigmoid", "tanh", "leaky_relu", "gelu", "silu"};
}
inline constexpr float leaky_slope = 0.01F;
/// Those whose derivative is a function of their output. They can follow another operation within its kernel.
enum class FusedActivation { none, relu, sigmoid, tanh };
/// Empty if the derivative is taken at the input: such an activation is an operation by itself (ActivationShape), and
/// other shapes do not take it.
[[nodiscard]] constexpr std::optional<FusedActivation> if_fused(Activation activation) noexcept {
    switch (activation) {
        case Activation::none:
            return FusedActivation::none;
        case Activation::relu:
            return FusedActivation::relu;
        case Activation::sigmoid:
            return FusedActivation::sigmoid;
        case Activation::tanh:
            return FusedActivation::tanh;
        case Activation::leaky_relu:
        case Activation::gelu:
        case Activation::silu:
            return std::nullopt;
    }
    return std::nullopt;
}
[[nodiscard]] constexpr bool needs_its_input(Activation activation) noexcept {
    return !if_fused(activation);
}
/// Throws Error where if_fused() is empty.
[[nodiscard]] FusedActivation fused(Activation activation);

/// In what numbers products may be computed; sums and memory are float32 in any case. It permits, it does not demand: a
/// device may be more exact. tf32: products of numbers rounded to 10 bits of mantissa. bfloat16: to 7 bits. float16: to
/// 10 bits and to the range from 6e-8 to 65504, beyond which they are 0 or infinite: for scaled losses (LossScale).
enum class Precision { float32, tf32, bfloat16, float16 };
constexpr std::array<std::string_view, 4> words_of(Precision) {
    return {"float32", "tf32", "bfloat16", "float16"};
}

/// Loss of a prediction: (prediction − target)², or its absolute value, whose gradient is 0 if they are equal.
enum class Regression { squared, absolute };

/// A convolution with bias and activation over x (batch, height, width, channels_in), NHWC. Channels go in `groups`
/// apart from one another, each of channels_in / groups to channels_out / groups.
/// Parameters, canonical: weight (channels_out, channels_in / groups, kernel, kernel), then bias (channels_out).
struct ConvolutionShape {
    static constexpr std::string_view name = "conv";
    std::int64_t batch = 1;
    std::int64_t height = 1;
    std::int64_t width = 1;
    std::int64_t channels_in = 1;
    std::int64_t channels_out = 1;
    std::int64_t kernel = 1;
    std::int64_t stride = 1;
    std::int64_t padding_before = 0;  ///< rows above and columns left
    std::int64_t padding_after = 0;   ///< rows below and columns right
    std::int64_t dilation = 1;        ///< pixels from one place of the kernel to the next
    std::int64_t groups = 1;          ///< divides both channels
    Activation activation = Activation::none;
    bool needs_input_grad = true;
    Precision precision = Precision::float32;
    bool deterministic = true;  ///< the same bits each time
    auto operator<=>(const ConvolutionShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return true; }
    /// Pixels that the kernel reaches over.
    [[nodiscard]] std::int64_t reach() const noexcept { return dilation * (kernel - 1) + 1; }
    [[nodiscard]] std::int64_t height_out() const noexcept {
        return (height + padding_before + padding_after - reach()) / stride + 1;
    }
    [[nodiscard]] std::int64_t width_out() const noexcept {
        return (width + padding_before + padding_after - reach()) / stride + 1;
    }
    [[nodiscard]] std::int64_t weights() const noexcept {
        return channels_out * (channels_in / groups) * kernel * kernel;
    }
};

enum class Pooling { max, average };

/// Pooling over x (batch, height, width, channels). No parameters. Average counts padding as PyTorch does (as zeros).
struct PoolingShape {
    static constexpr std::string_view name = "pool";
    Pooling kind = Pooling::max;
    std::int64_t batch = 1;
    std::int64_t height = 1;
    std::int64_t width = 1;
    std::int64_t channels = 1;
    std::int64_t kernel = 2;
    std::int64_t stride = 2;
    std::int64_t padding = 0;
    auto operator<=>(const PoolingShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return false; }
    [[nodiscard]] std::int64_t height_out() const noexcept { return (height + 2 * padding - kernel) / stride + 1; }
    [[nodiscard]] std::int64_t width_out() const noexcept { return (width + 2 * padding - kernel) / stride + 1; }
    /// Memory for the index of the input that each maximum came from.
    [[nodiscard]] std::int64_t saved_floats() const noexcept {
        return kind == Pooling::max ? batch * height_out() * width_out() * channels : 0;
    }
};

/// The mean of each channel over the pixels of x (batch, pixels, channels). No parameters.
struct MeanShape {
    static constexpr std::string_view name = "mean";
    std::int64_t batch = 1;
    std::int64_t pixels = 1;  ///< height · width
    std::int64_t channels = 1;
    auto operator<=>(const MeanShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return false; }
};

/// A linear layer with bias and activation over x (batch, height, width, channels) in NHWC, or (batch, features) with
/// height = width = 1. Parameters, canonical: weight (units, channels·height·width) whose columns are in CHW order,
/// then bias (units).
struct LinearShape {
    static constexpr std::string_view name = "linear";
    std::int64_t batch = 1;
    std::int64_t height = 1;
    std::int64_t width = 1;
    std::int64_t channels = 1;
    std::int64_t units = 1;
    Activation activation = Activation::none;
    bool needs_input_grad = true;
    Precision precision = Precision::float32;
    auto operator<=>(const LinearShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return true; }
};

/// An activation by itself over `count` floats per batch. No parameters.
struct ActivationShape {
    static constexpr std::string_view name = "activation";
    std::int64_t count = 1;  ///< batch included
    Activation activation = Activation::relu;
    auto operator<=>(const ActivationShape&) const = default;

    [[nodiscard]] bool backward_reads_input() const noexcept { return needs_its_input(activation); }
};

/// The sum of two tensors of `count` floats, with an activation. No parameters.
struct AddShape {
    static constexpr std::string_view name = "add";
    std::int64_t count = 1;  ///< batch included
    Activation activation = Activation::none;
    auto operator<=>(const AddShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return false; }
};

/// Batch normalisation over x (batch, pixels, channels), with an activation (torch.nn.BatchNorm2d; BatchNorm1d with one
/// pixel). In training by the mean and the variance over the batch of the whole worker, padding left out; the running
/// ones follow. In validation by the running ones.
/// Parameters, canonical: weight (channels), bias (channels). Buffers: running mean (channels), running variance
/// (channels), which is that of a sample: divided by n − 1.
struct BatchNormShape {
    static constexpr std::string_view name = "batch_norm";
    std::int64_t batch = 1;
    std::int64_t pixels = 1;  ///< height · width
    std::int64_t channels = 1;
    double momentum = 0.1;  ///< share of the present batch in the running statistics
    double epsilon = 1e-5;
    Activation activation = Activation::none;
    bool operator==(const BatchNormShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return true; }
    /// Sums, mean and deviation in double, four factors.
    [[nodiscard]] std::int64_t saved_floats() const noexcept { return 16 * channels; }
};

/// Layer normalisation of each sample of x (batch, pixels, channels) over all its values, whose variance is divided by
/// their number (torch.nn.GroupNorm with one group; LayerNorm with one pixel).
/// Parameters, canonical: weight (channels), bias (channels).
struct LayerNormShape {
    static constexpr std::string_view name = "layer_norm";
    std::int64_t batch = 1;
    std::int64_t pixels = 1;  ///< height · width
    std::int64_t channels = 1;
    double epsilon = 1e-5;
    bool operator==(const LayerNormShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return true; }
    /// Mean and deviation in double.
    [[nodiscard]] std::int64_t saved_floats() const noexcept { return 4 * batch; }
};

/// Two tensors (rows, first) and (rows, second) side by side: (rows, first + second). No parameters.
struct ConcatenateShape {
    static constexpr std::string_view name = "concatenate";
    std::int64_t rows = 1;  ///< batch · height · width
    std::int64_t first = 1;
    std::int64_t second = 1;
    auto operator<=>(const ConcatenateShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return false; }
};

/// Dropout over x (batch, features): in training a value becomes 0 with probability `rate`, else it is divided by
/// 1 − rate; in validation y = x. No parameters. Which values go is a function of StepScalars::random_key, the sample's
/// place in the batch of the whole worker, `layer` and the value's index within the sample.
struct DropoutShape {
    static constexpr std::string_view name = "dropout";
    std::int64_t batch = 1;
    std::int64_t features = 1;
    double rate = 0.5;        ///< in [0, 1)
    std::uint32_t layer = 0;  ///< which dropout of the model
    bool operator==(const DropoutShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return false; }
};

/// Operations that a device can make. Each has a `name`, which profiles print, and says what must be kept from
/// forward() to backward(): `backward_reads_input()`; `saved_floats()`, if it keeps anything else; its output, if it
/// has an `activation` whose derivative is computed from the output.
using OperationShape = std::variant<ConvolutionShape, PoolingShape, MeanShape, LinearShape, ActivationShape, AddShape,
                                    ConcatenateShape, BatchNormShape, LayerNormShape, DropoutShape>;

/// Whether backward() reads the input x; and the output y. What it does not read may be overwritten after forward().
[[nodiscard]] bool backward_reads_input(const OperationShape& shape) noexcept;
[[nodiscard]] bool backward_reads_output(const OperationShape& shape) noexcept;
/// Floats that an operation keeps from forward() to backward() beside its input and output, about.
[[nodiscard]] std::int64_t saved_floats(const OperationShape& shape) noexcept;

/// Whether forward() learns from the batch and follows it with running statistics, or uses what was learnt.
enum class Mode { training, validation };

/// Sums over the ranks that train together.
class GroupSum {
public:
    virtual ~GroupSum() = default;
    /// Collective over these ranks. Sums `count` doubles of the device's memory in place; what the device is asked for
    /// from now on finds them summed.
    virtual void sum(double* values, std::size_t count) = 0;
};

class StepContext;

/// State shared by the operations of one pass through a model.
struct Pass {
    StepContext& step;           ///< of the device that made the operations
    Mode mode = Mode::training;  ///< backward() follows a forward() in training
    GroupSum* group = nullptr;   ///< null: this rank trains alone
    LapTimer* timer = nullptr;   ///< null: not measured
};

/// A planned operation with its own packed copies of the parameters and its own scratch memory.
/// All pointers are to memory of the device that made it.
class Operation {
public:
    virtual ~Operation() = default;

    /// Takes the canonical parameters, and the buffers, which stay where they are; called once after each change of the
    /// parameters. Nothing if there are none.
    virtual void pack(const float* /*parameters*/, float* /*buffers*/) {}
    /// y = f(x…).
    virtual void forward(const Pass& pass, std::span<const float* const> x, float* y) = 0;
    /// From the gradient of y (which may be overwritten) to those of each x (`grad_x`, null if it is not needed;
    /// overwritten) and of the parameters (`grad_parameters`, canonical, overwritten).
    virtual void backward(const Pass& pass, std::span<const float* const> x, const float* y, float* grad_y,
                          std::span<float* const> grad_x, float* grad_parameters) = 0;
    /// How many doubles forward() sums over the ranks in training, in one call; and backward(). 0: none.
    [[nodiscard]] virtual std::size_t forward_sums() const { return 0; }
    [[nodiscard]] virtual std::size_t backward_sums() const { return 0; }
    /// The library's names of what it runs, for logs and tests: "jit:avx512_core, brgconv…".
    [[nodiscard]] virtual std::string implementation() const = 0;
};

}  // namespace finch::backend
