#pragma once

#include "finch/backend/cuda_runtime.hpp"
#include "finch/backend/operation.hpp"

#include "kernels/convolution_gradients.hpp"
#include "number_of.hpp"
#include "stream.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

/// How the kernels for few channels compute a convolution: which kernels, with which grids.
namespace finch::backend::cuda::direct {

// The rules that choose a direct convolution kernel for a shape. The numbers are estimates for an H200 (132
// multiprocessors), from counts of instructions and shared-memory accesses. To correct the numbers, measure with
// tools/bench/gpu_step.py.

/// The settings of the kernels. The settings apply if the number of output pixels (batch · height · width) is at least
/// `from_pixels`, scaled to the multiprocessors of the GPU.
struct DirectRule {
    std::int64_t from_pixels;
    int pixels;         ///< pixels of a row per thread: 2 or 4
    bool many_outputs;  ///< true: as many channels per thread as fit; false: few, for more threads
    int rows;           ///< rows of a band, which one block computes, in forward and for the input's gradient
    int weight_rows;    ///< rows of a band for the gradient of the weights
};
inline constexpr std::array direct_rules{
    DirectRule{0, 2, false, 4, 4},        // 8 images of 28 x 28: 56 blocks of 128 threads
    DirectRule{32'768, 4, false, 14, 7},  // 64 images: 128 blocks of 224 threads
    DirectRule{131'072, 4, true, 28, 14}  // 256 images and more: 256 blocks of 224 threads, twice the products per load
};

/// In the kernel for the gradient of the weights, a block processes several bands if there are more bands than blocks.
inline constexpr int most_blocks_per_multiprocessor = 2;
/// With one input channel a block has few sums, so its threads form many slices. Many slices need more rows to divide
/// among themselves.
inline constexpr int rows_of_few_channels = 28;

inline constexpr std::int64_t most_channels = 16;
inline constexpr int most_threads = 256;              // of a block
inline constexpr std::size_t most_bytes = 72 * 1024;  // of shared memory: three blocks fit on a multiprocessor

inline int whole(std::int64_t value) {
    return static_cast<int>(value);
}
inline int parts_of(int count, int size) {
    return (count + size - 1) / size;
}
inline int round_up_to_warps(int threads) {
    return std::clamp(parts_of(threads, 32) * 32, 32, most_threads);
}

/// Returns the height of a band: `wanted`, or less if a band of this height does not fit in a block.
template <class Fits>
int rows_that_fit(int wanted, Fits&& fits) {
    while (wanted > 1 && !fits(wanted)) {
        wanted = parts_of(wanted, 2);
    }
    return wanted;
}

inline std::int64_t pixels_out(const ConvolutionShape& shape) {
    return shape.batch * shape.height_out() * shape.width_out();
}

inline DirectRule rule_for(const ConvolutionShape& shape, const DeviceFacts& facts) {
    constexpr std::int64_t estimated_for = 132;  // multiprocessors
    DirectRule chosen = direct_rules.front();
    for (const DirectRule& rule : direct_rules) {
        if (pixels_out(shape) * estimated_for >= rule.from_pixels * facts.multiprocessors) {
            chosen = rule;
        }
    }
    return chosen;
}

inline ConvolutionSizes forward_sizes(const ConvolutionShape& shape) {
    return {.height = whole(shape.height),
            .width = whole(shape.width),
            .channels = whole(shape.channels_in),
            .height_out = whole(shape.height_out()),
            .width_out = whole(shape.width_out()),
            .channels_out = whole(shape.channels_out),
            .padding = whole(shape.padding_before)};
}
/// Returns the sizes of the convolution that computes the input's gradient from the output's gradient.
inline ConvolutionSizes gradient_sizes(const ConvolutionShape& shape) {
    return {.height = whole(shape.height_out()),
            .width = whole(shape.width_out()),
            .channels = whole(shape.channels_out),
            .height_out = whole(shape.height),
            .width_out = whole(shape.width),
            .channels_out = whole(shape.channels_in),
            .padding = whole(shape.kernel - 1 - shape.padding_before)};
}

/// The tensors of a call.
struct Tensors {
    const float* parameters;
    const float* x;
    const float* y = nullptr;       ///< in backward
    const float* grad_y = nullptr;  ///< in backward
    float* to;                      ///< y, in backward the gradient of x
    float* partial = nullptr;       ///< in backward: BackwardPass::partial_bytes()
};

template <int kernel, int pixels, int outputs>
[[nodiscard]] auto with_tensors(DirectConvolution<kernel, pixels, outputs> planned, const Tensors& tensors) {
    planned.x = planned.is_gradient ? tensors.grad_y : tensors.x;
    planned.slope_of = tensors.y;
    planned.parameters = tensors.parameters;
    planned.y = tensors.to;
    return planned;
}
template <int kernel, int outputs>
[[nodiscard]] auto with_tensors(DirectWeightGradient<kernel, outputs> planned, const Tensors& tensors) {
    planned.x = tensors.x;
    planned.y = tensors.y;
    planned.grad_y = tensors.grad_y;
    planned.partial = tensors.partial;
    return planned;
}
template <int kernel, int weight_outputs, int outputs>
[[nodiscard]] auto with_tensors(DirectGradients<kernel, weight_outputs, outputs> planned, const Tensors& tensors) {
    planned.weights = with_tensors(planned.weights, tensors);
    planned.input = with_tensors(planned.input, tensors);
    return planned;
}

/// A kernel with all arguments except the tensors.
template <class Kernel>
struct Planned {
    Kernel kernel;
    Grid grid;
    int items;  ///< of a block, one per thread
};

/// A planned kernel of any type.
struct DirectPass {
    std::string name;
    int items;
    std::size_t shared_bytes;
    std::function<void(cudaStream_t stream, const Tensors& tensors)> run;
};

template <class Kernel>
DirectPass direct_pass(const Planned<Kernel>& planned, std::string name = {}) {
    return {.name = std::move(name),
            .items = planned.items,
            .shared_bytes = planned.grid.shared_bytes,
            .run = [planned](cudaStream_t stream, const Tensors& tensors) {
                FINCH_CUDA(launch(stream, planned.grid, with_tensors(planned.kernel, tensors)));
            }};
}

template <int kernel, int pixels, int outputs>
Planned<DirectConvolution<kernel, pixels, outputs>> plan_convolution(const ConvolutionSizes& sizes, std::int64_t batch,
                                                                     int wanted_rows, Activation activation,
                                                                     bool is_gradient) {
    using Kernel = DirectConvolution<kernel, pixels, outputs>;
    const int groups = parts_of(sizes.channels_out, outputs);
    const int segments = parts_of(sizes.width_out, pixels);
    const auto items_of = [&](int height) { return height * segments * groups; };
    const auto tile_of = [&](int height) {
        return tile_of_columns(height, Kernel::columns(sizes.width_out), kernel, sizes.channels,
                               round_up_to_warps(items_of(height)));
    };
    const auto bytes_of = [&](int height) {
        return Kernel::shared_floats(sizes, tile_of(height), groups) * sizeof(float);
    };
    const int most_rows = rows_that_fit(std::min(wanted_rows, sizes.height_out), [&](int height) {
        return items_of(height) <= most_threads && bytes_of(height) <= most_bytes;
    });
    const int bands = parts_of(sizes.height_out, most_rows);
    const int rows = parts_of(sizes.height_out, bands);
    const Grid grid{
        .blocks_x = batch * bands, .threads = round_up_to_warps(items_of(rows)), .shared_bytes = bytes_of(rows)};
    const Kernel planned{.sizes = sizes,
                         .tile = tile_of(rows),
                         .bands = divisor(bands),
                         .segments = divisor(segments),
                         .positions = divisor(rows * segments),
                         .minor = divisor(is_gradient ? sizes.channels_out : sizes.channels),
                         .groups = groups,
                         .has_aligned_rows = sizes.width_out * sizes.channels_out % 4 == 0,
                         .is_gradient = is_gradient,
                         .activation = activation};
    return {.kernel = planned, .grid = grid, .items = items_of(rows)};
}

/// Returns the number of channels per thread. With few channels per thread there are more threads. With many channels
/// per thread, a thread computes more products for each value that it reads.
inline int outputs_of(int channels, bool many) {
    if (many) {
        return channels % 10 == 0 ? 10 : channels > 5 ? 8 : channels == 5 ? 5 : 4;
    }
    return channels % 5 == 0 ? 5 : 4;
}

inline DirectPass plan_direct(const DeviceFacts& facts, const ConvolutionSizes& sizes, const ConvolutionShape& shape,
                              bool is_gradient) {
    const DirectRule rule = rule_for(shape, facts);
    const int per_thread = outputs_of(sizes.channels_out, rule.many_outputs);
    return with_int<3, 5>(whole(shape.kernel), [&](auto kernel) {
        const auto plan = [&](auto pixels, auto outputs) {
            return direct_pass(plan_convolution<kernel.value, pixels.value, outputs.value>(
                                   sizes, shape.batch, rule.rows, shape.activation, is_gradient),
                               "finch:direct, " + std::to_string(pixels.value) + " pixels x " +
                                   std::to_string(outputs.value) + " channels");
        };
        const auto plan_two = [&](auto outputs) { return plan(std::integral_constant<int, 2>(), outputs); };
        const auto plan_four = [&](auto outputs) { return plan(std::integral_constant<int, 4>(), outputs); };
        return rule.pixels == 2 ? with_int<5, 4>(per_thread, plan_two) : with_int<5, 8, 10, 4>(per_thread, plan_four);
    });
}

template <int kernel, int outputs>
Planned<DirectWeightGradient<kernel, outputs>> plan_weights(const ConvolutionShape& shape, const DeviceFacts& facts) {
    using Kernel = DirectWeightGradient<kernel, outputs>;
    const int weight_rows = rule_for(shape, facts).weight_rows;
    const ConvolutionSizes sizes = forward_sizes(shape);
    const int items = sizes.channels * kernel;
    const int slices = std::max(1, most_threads / items);
    const int threads = round_up_to_warps(slices * items);
    const auto tile_of = [&](int height) {
        return tile_of_kernel_rows(height, sizes.width_out + kernel - 1, kernel, sizes.channels, threads);
    };
    const auto bytes_of = [&](int height) {
        return Kernel::shared_floats(sizes, tile_of(height), threads) * sizeof(float);
    };
    const int wanted = items < 8 ? std::max(weight_rows, rows_of_few_channels) : weight_rows;
    const int rows =
        rows_that_fit(std::min(wanted, sizes.height_out), [&](int height) { return bytes_of(height) <= most_bytes; });
    const int bands = parts_of(sizes.height_out, rows);
    const int piece = parts_of(sizes.width_out, parts_of(sizes.width_out, 8));
    const std::int64_t most_blocks = std::int64_t{facts.multiprocessors} * most_blocks_per_multiprocessor;
    const Grid grid{.blocks_x = std::min<std::int64_t>(shape.batch * bands, most_blocks),
                    .threads = threads,
                    .shared_bytes = bytes_of(rows)};
    const Kernel planned{
        .sizes = sizes,
        .tile = tile_of(rows),
        .batch = whole(shape.batch),
        .bands = divisor(bands),
        .piece = piece,
        .pieces = divisor(parts_of(sizes.width_out, piece)),
        .items = divisor(items),
        .weights = divisor(items * kernel),
        .vectors_of_grad = divisor(sizes.channels_out % 2 == 0 ? sizes.channels_out / 2 : sizes.channels_out),
        .slices = slices,
        .activation = shape.activation};
    return {.kernel = planned, .grid = grid, .items = slices * items};
}

/// The planned gradients of the weights and biases, as partial sums, and the gradient of x unless another pass computes
/// it.
struct BackwardPass {
    DirectPass pass;
    int rows;   ///< of the partial sums
    int count;  ///< weights and biases
    bool has_input_grad = false;

    [[nodiscard]] std::size_t partial_bytes() const {
        return static_cast<std::size_t>(rows) * static_cast<std::size_t>(count) * sizeof(float);
    }
};

/// Adds the gradient of x to the pass, unless its kernel needs more threads than the kernel of the weights' gradient.
template <int outputs, int kernel, int weight_outputs>
void add_input_grad(const Planned<DirectWeightGradient<kernel, weight_outputs>>& weights, const ConvolutionShape& shape,
                    int rows, BackwardPass& backward) {
    const auto input =
        plan_convolution<kernel, 2, outputs>(gradient_sizes(shape), shape.batch, rows, shape.activation, true);
    if (input.grid.threads > weights.grid.threads) {
        return;
    }
    Planned<DirectGradients<kernel, weight_outputs, outputs>> both{
        .kernel = {.weights = weights.kernel, .input = input.kernel, .weight_blocks = whole(weights.grid.blocks_x)},
        .grid = weights.grid,
        .items = weights.items};
    both.grid.blocks_x += input.grid.blocks_x;
    both.grid.shared_bytes = std::max(weights.grid.shared_bytes, input.grid.shared_bytes);
    backward.pass = direct_pass(both);
    backward.has_input_grad = true;
}

template <int kernel, int outputs>
BackwardPass plan_gradients(const ConvolutionShape& shape, const DeviceFacts& facts) {
    const auto weights = plan_weights<kernel, outputs>(shape, facts);
    BackwardPass backward{.pass = direct_pass(weights),
                          .rows = whole(weights.grid.blocks_x),
                          .count = whole(shape.channels_out * (shape.channels_in * kernel * kernel + 1))};
    const DirectRule rule = rule_for(shape, facts);
    if (shape.needs_input_grad && rule.pixels == 2) {
        with_int<4, 5>(outputs_of(whole(shape.channels_in), false), [&](auto input_outputs) {
            add_input_grad<input_outputs.value>(weights, shape, rule.rows, backward);
        });
    }
    return backward;
}

inline BackwardPass plan_backward(const ConvolutionShape& shape, const DeviceFacts& facts) {
    const std::int64_t channels = shape.channels_out;
    return with_int<3, 5>(whole(shape.kernel), [&](auto kernel) {
        return with_int<4, 8, 10, 16>(
            channels <= 4    ? 4
            : channels <= 8  ? 8
            : channels <= 10 ? 10
                             : 16,
            [&](auto outputs) { return plan_gradients<kernel.value, outputs.value>(shape, facts); });
    });
}

}  // namespace finch::backend::cuda::direct
