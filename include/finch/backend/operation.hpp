#pragma once

#include "finch/backend/lap_timer.hpp"
#include "finch/backend/planes.hpp"

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

/// The activations of torch.nn with their default parameters: leaky_relu has a slope of 0.01, gelu is exact (by erf).
enum class Activation { none, relu, sigmoid, tanh, leaky_relu, gelu, silu };
constexpr std::array<std::string_view, 7> words_of(Activation) {
    return {"none", "relu", "sigmoid", "tanh", "leaky_relu", "gelu", "silu"};
}
inline constexpr float leaky_slope = 0.01F;
/// Activations that can be part of another operation's kernel, because their derivative is a function of their output.
enum class FusedActivation { none, relu, sigmoid, tanh };
/// Returns the fused form of an activation. Returns std::nullopt if the derivative is computed from the activation's
/// input. An activation without a fused form is a separate operation (ActivationShape); the other shapes do not accept
/// such an activation.
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
/// Throws Error if if_fused() returns std::nullopt.
[[nodiscard]] FusedActivation fused(Activation activation);

/// The lowest precision in which products may be computed; a device may use a higher precision. Sums of products are
/// always float32. Tensors in memory are float32; with `bfloat16` a device may store activations and their gradients as
/// bfloat16 (Device::supports_types). With `tf32` the factors of a product are rounded to 10 bits of mantissa, with
/// `bfloat16` to 7 bits. With `float16` the factors are rounded to 10 bits, and their magnitudes range from 6e-8 to
/// 65504. Factors beyond this range become 0 or infinite, so the loss must be scaled (LossScale).
enum class Precision { float32, tf32, bfloat16, float16 };
constexpr std::array<std::string_view, 4> words_of(Precision) {
    return {"float32", "tf32", "bfloat16", "float16"};
}

/// The loss of a prediction: (prediction − target)², or |prediction − target|. If prediction and target are equal, the
/// gradient of |prediction − target| is 0.
enum class Regression { squared, absolute };

/// A convolution with bias and activation over x (batch, height, width, channels_in), NHWC. The channels are divided
/// into `groups`. Each group maps channels_in / groups input channels to channels_out / groups output channels.
/// Parameters in canonical order: weight (channels_out, channels_in / groups, kernel, kernel), bias (channels_out).
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
    std::int64_t dilation = 1;        ///< distance in pixels between neighbouring kernel elements
    std::int64_t groups = 1;          ///< divides channels_in and channels_out
    Activation activation = Activation::none;
    bool needs_input_grad = true;
    Precision precision = Precision::float32;
    bool deterministic = true;  ///< results are bitwise reproducible
    Layout x_layout = Layout::nhwc;
    Layout y_layout = Layout::nhwc;
    TensorType x_type = TensorType::float32;  ///< of x and its gradient
    TensorType y_type = TensorType::float32;  ///< of y and its gradient
    /// True: forward() does not add the bias, and backward() does not write its gradient. The batch normalisation that
    /// follows would remove the bias. It adds the bias to its running mean and sets the gradient of the bias to 0
    /// (BatchNormShape::skipped_bias_offset).
    bool skips_bias = false;
    auto operator<=>(const ConvolutionShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return true; }
    /// Returns the number of pixels that the dilated kernel spans along one axis.
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

/// Pooling over x (batch, height, width, channels). No parameters. Average pooling counts padding as zeros, like
/// PyTorch.
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
    TensorType x_type = TensorType::float32;
    TensorType y_type = TensorType::float32;
    auto operator<=>(const PoolingShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return false; }
    [[nodiscard]] std::int64_t height_out() const noexcept { return (height + 2 * padding - kernel) / stride + 1; }
    [[nodiscard]] std::int64_t width_out() const noexcept { return (width + 2 * padding - kernel) / stride + 1; }
    /// Returns the number of floats that the indices of the maxima in the input take.
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
    TensorType x_type = TensorType::float32;
    TensorType y_type = TensorType::float32;
    auto operator<=>(const MeanShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return false; }
};

/// A linear layer with bias and activation over x (batch, height, width, channels) in NHWC, or (batch, features) with
/// height = width = 1. Parameters in canonical order: weight (units, channels·height·width) with columns in CHW order,
/// bias (units).
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

/// An activation as a separate operation over `count` floats. No parameters.
struct ActivationShape {
    static constexpr std::string_view name = "activation";
    std::int64_t count = 1;  ///< batch included
    Activation activation = Activation::relu;
    TensorType x_type = TensorType::float32;
    TensorType y_type = TensorType::float32;
    auto operator<=>(const ActivationShape&) const = default;

    [[nodiscard]] bool backward_reads_input() const noexcept { return needs_its_input(activation); }
};

/// The sum of two tensors of `count` floats, followed by an activation. No parameters.
struct AddShape {
    static constexpr std::string_view name = "add";
    std::int64_t count = 1;  ///< batch included
    Activation activation = Activation::none;
    TensorType x_type = TensorType::float32;
    TensorType y_type = TensorType::float32;
    auto operator<=>(const AddShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return false; }
};

/// Batch normalisation over x (batch, pixels, channels), followed by an activation (torch.nn.BatchNorm2d, or
/// BatchNorm1d with one pixel). Training uses the mean and the variance over the batch of the whole worker, without
/// padding, and updates the running statistics. Validation uses the running statistics.
/// Parameters in canonical order: weight (channels), bias (channels). Buffers: running mean (channels), running
/// variance (channels). The running variance is the unbiased sample variance, with the divisor n − 1.
struct BatchNormShape {
    static constexpr std::string_view name = "batch_norm";
    std::int64_t batch = 1;
    std::int64_t pixels = 1;  ///< height · width
    std::int64_t channels = 1;
    double momentum = 0.1;  ///< weight of the current batch in the running statistics
    double epsilon = 1e-5;
    Activation activation = Activation::none;
    TensorType x_type = TensorType::float32;
    TensorType y_type = TensorType::float32;
    /// Offset in floats from the parameters (and gradients) of this layer to the bias that the preceding convolution
    /// skips; 0 if there is none. The bias changes only the running mean. Its gradient is 0.
    std::int64_t skipped_bias_offset = 0;
    bool operator==(const BatchNormShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return true; }
    /// Returns the number of floats that five factors per channel and, in double, the sums, the mean and the deviation
    /// take.
    [[nodiscard]] std::int64_t saved_floats() const noexcept { return 17 * channels; }
};

/// Layer normalisation of each sample of x (batch, pixels, channels) over all values of the sample (torch.nn.GroupNorm
/// with one group, or LayerNorm with one pixel). The divisor of the variance is the number of values.
/// Parameters in canonical order: weight (channels), bias (channels).
struct LayerNormShape {
    static constexpr std::string_view name = "layer_norm";
    std::int64_t batch = 1;
    std::int64_t pixels = 1;  ///< height · width
    std::int64_t channels = 1;
    double epsilon = 1e-5;
    bool operator==(const LayerNormShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return true; }
    /// Returns the number of floats that the mean and the deviation of each sample, in double, take.
    [[nodiscard]] std::int64_t saved_floats() const noexcept { return 4 * batch; }
};

/// The concatenation of two tensors (rows, first) and (rows, second) to (rows, first + second). No parameters.
struct ConcatenateShape {
    static constexpr std::string_view name = "concatenate";
    std::int64_t rows = 1;  ///< batch · height · width
    std::int64_t first = 1;
    std::int64_t second = 1;
    TensorType x_type = TensorType::float32;
    TensorType y_type = TensorType::float32;
    auto operator<=>(const ConcatenateShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return false; }
};

/// Dropout over x (batch, features). In training a value becomes 0 with probability `rate`; otherwise it is divided by
/// 1 − rate. In validation y = x. No parameters. The mask is a function of StepScalars::random_key, the sample's index
/// in the batch of the whole worker, `layer` and the value's index within the sample.
struct DropoutShape {
    static constexpr std::string_view name = "dropout";
    std::int64_t batch = 1;
    std::int64_t features = 1;
    double rate = 0.5;        ///< in [0, 1)
    std::uint32_t layer = 0;  ///< number of this dropout layer in the model
    bool operator==(const DropoutShape&) const = default;

    [[nodiscard]] static constexpr bool backward_reads_input() noexcept { return false; }
};

/// The operations that a device can make. Each shape has a `name`, which profiles print. Each shape also declares which
/// data must be kept from forward() to backward(). The input must be kept if `backward_reads_input()` is true. The
/// output must be kept if the shape has an `activation` with a derivative that is computed from the output. Apart from
/// the input and the output, `saved_floats()` floats must be kept.
using OperationShape = std::variant<ConvolutionShape, PoolingShape, MeanShape, LinearShape, ActivationShape, AddShape,
                                    ConcatenateShape, BatchNormShape, LayerNormShape, DropoutShape>;

/// backward_reads_input() returns true if backward() reads the input x. backward_reads_output() returns true if
/// backward() reads the output y. Tensors that backward() does not read may be overwritten after forward().
[[nodiscard]] bool backward_reads_input(const OperationShape& shape) noexcept;
[[nodiscard]] bool backward_reads_output(const OperationShape& shape) noexcept;
/// Returns approximately how many floats an operation keeps from forward() to backward(), excluding its input and
/// output.
[[nodiscard]] std::int64_t saved_floats(const OperationShape& shape) noexcept;

/// The mode of forward(). In training, batch normalisation uses the batch's statistics and updates the running
/// statistics. In validation, batch normalisation uses the running statistics.
enum class Mode { training, validation };

/// Sums over the ranks that train one model together.
class GroupSum {
public:
    virtual ~GroupSum() = default;
    /// A collective call of the ranks that train one model together. Sums `count` doubles of device memory in place.
    /// Operations that are enqueued later on the device read the summed values.
    virtual void sum(double* values, std::size_t count) = 0;
};

class StepContext;

/// How a device divides a batch into blocks of samples, which it computes one after the other. The replicas of a device
/// compute blocks at the same time.
struct Blocks {
    std::int64_t bytes = 0;  ///< of the activations of a block, about; 0: every batch is one block
    std::int64_t replicas = 1;
};

/// State shared by the operations of one pass through a model.
struct Pass {
    StepContext& step;           ///< a context of the device that made the operations
    Mode mode = Mode::training;  ///< backward() follows a forward() in training
    GroupSum* group = nullptr;   ///< null: this rank trains alone
    LapTimer* timer = nullptr;   ///< null: not measured
    /// The first and the last block of a batch that an operation computes. Only a device with Blocks::bytes above 0
    /// supports several blocks.
    bool is_first_block = true;
    bool is_last_block = true;
};

/// A planned operation with its own packed copies of the parameters. All pointers point to memory of the device that
/// made the operation. A bfloat16 tensor is passed as a float pointer to its first byte.
class Operation {
public:
    virtual ~Operation() = default;

    /// Takes the canonical parameters and the buffers, which must stay at their addresses. Call pack() after each
    /// change of the parameters, which may be read until Device::finish_deferred() or the next forward(). Does nothing
    /// if the operation has no parameters.
    virtual void pack(const float* /*parameters*/, float* /*buffers*/) {}
    /// Computes y = f(x…).
    virtual void forward(const Pass& pass, std::span<const float* const> x, float* y) = 0;
    /// Computes from the gradient of y the gradient of each x (`grad_x`; an entry is null if its gradient is not
    /// needed) and the gradients of the parameters (`grad_parameters`, in canonical order). Overwrites `grad_x`, and
    /// may overwrite `grad_y`. The gradients of the parameters are summed over the blocks of a batch: the sums begin
    /// anew in the first block, and `grad_parameters` is complete after the last block and, if defers_grads(), after
    /// Device::finish_deferred(). Before, it may hold anything, and must not be changed.
    virtual void backward(const Pass& pass, std::span<const float* const> x, const float* y, float* grad_y,
                          std::span<float* const> grad_x, float* grad_parameters) = 0;
    /// True if `grad_parameters` is complete only after Device::finish_deferred().
    [[nodiscard]] virtual bool defers_grads() const { return false; }
    /// Returns how many doubles one call of forward() in training sums over the ranks; 0 if none. backward_sums()
    /// returns the same number for backward().
    [[nodiscard]] virtual std::size_t forward_sums() const { return 0; }
    [[nodiscard]] virtual std::size_t backward_sums() const { return 0; }
    /// Returns, as text for logs and tests, the names of the kernels in use, for example "jit:avx512_core, brgconv…".
    [[nodiscard]] virtual std::string implementation() const = 0;
};

}  // namespace finch::backend
