#include "finch/base/format.hpp"

#include "direct_rules.hpp"
#include "kernels/convolution_forward.hpp"
#include "kernels/convolution_weight_gradient.hpp"
#include "operations.hpp"
#include "runtime.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

namespace finch::backend::cuda {
namespace {

constexpr std::int64_t most_channels = 16;

int whole(std::int64_t value) {
    return static_cast<int>(value);
}
int parts_of(int count, int size) {
    return (count + size - 1) / size;
}
int round_up_to_warps(int threads) {
    return std::clamp(parts_of(threads, 32) * 32, 32, 256);
}

/// The height of a band: `wanted`, or less where its tile would leave a multiprocessor room for two blocks only.
template <class BytesOf>
int rows_that_fit(int wanted, BytesOf&& bytes_of) {
    constexpr std::size_t most_bytes = 72 * 1024;
    while (wanted > 1 && bytes_of(wanted) > most_bytes) {
        wanted = parts_of(wanted, 2);
    }
    return wanted;
}

std::int64_t pixels_out(const ConvolutionShape& shape) {
    return shape.batch * shape.height_out() * shape.width_out();
}

ConvolutionSizes forward_sizes(const ConvolutionShape& shape) {
    return {.height = whole(shape.height),
            .width = whole(shape.width),
            .channels = whole(shape.channels_in),
            .height_out = whole(shape.height_out()),
            .width_out = whole(shape.width_out()),
            .channels_out = whole(shape.channels_out),
            .padding = whole(shape.padding_before)};
}
/// The convolution that makes the input's gradient: it reads the output's.
ConvolutionSizes gradient_sizes(const ConvolutionShape& shape) {
    return {.height = whole(shape.height_out()),
            .width = whole(shape.width_out()),
            .channels = whole(shape.channels_out),
            .height_out = whole(shape.height),
            .width_out = whole(shape.width),
            .channels_out = whole(shape.channels_in),
            .padding = whole(shape.kernel - 1 - shape.padding_before)};
}

/// What a kernel takes that changes from call to call.
struct Pass {
    const float* x;
    const float* slope_of;
    const float* parameters;
    float* y;
};

/// A planned convolution: everything but the pointers.
struct DirectPass {
    std::function<void(cudaStream_t, const Pass&)> run;
    std::string name;
    std::size_t shared_bytes = 0;
};

template <int kernel, int pixels, int outputs>
DirectPass plan_pass(const ConvolutionSizes& sizes, std::int64_t batch, int rows, Activation activation,
                     bool is_gradient) {
    using Kernel = DirectConvolution<kernel, pixels, outputs>;
    const int groups = parts_of(sizes.channels_out, outputs);
    const auto tile_of = [&](int height) { return tile_sizes(height, Kernel::columns(sizes.width_out), kernel); };
    rows = rows_that_fit(std::min(rows, sizes.height_out), [&](int height) {
        return Kernel::shared_floats(sizes, tile_of(height), groups) * sizeof(float);
    });
    const TileSizes tile = tile_of(rows);
    const int bands = parts_of(sizes.height_out, rows);
    const int items = rows * parts_of(sizes.width_out, pixels) * groups;
    const std::size_t shared_bytes = Kernel::shared_floats(sizes, tile, groups) * sizeof(float);
    const Grid grid{.blocks_x = batch * bands, .threads = round_up_to_warps(items), .shared_bytes = shared_bytes};
    auto run = [=](cudaStream_t stream, const Pass& pass) {
        FINCH_CUDA(launch(stream, grid,
                          Kernel{.sizes = sizes,
                                 .tile = tile,
                                 .bands = bands,
                                 .groups = groups,
                                 .is_gradient = is_gradient,
                                 .activation = activation,
                                 .x = pass.x,
                                 .slope_of = pass.slope_of,
                                 .parameters = pass.parameters,
                                 .y = pass.y}));
    };
    return {run, fmt::format("finch:direct {0}x{0}, {1} pixels x {2} channels", kernel, pixels, outputs), shared_bytes};
}

/// The number of channels that a thread computes: few leave more threads, many more products for what they read.
int outputs_of(int channels, bool many) {
    if (many) {
        return channels % 10 == 0 ? 10 : channels > 5 ? 8 : channels == 5 ? 5 : 4;
    }
    return channels % 5 == 0 ? 5 : 4;
}

template <int kernel, int pixels>
DirectPass plan_outputs(const ConvolutionSizes& sizes, std::int64_t batch, const DirectRule& rule,
                        Activation activation, bool is_gradient) {
    switch (outputs_of(sizes.channels_out, rule.many_outputs && pixels > 1)) {
        case 5:
            return plan_pass<kernel, pixels, 5>(sizes, batch, rule.rows, activation, is_gradient);
        case 8:
            return plan_pass<kernel, pixels, 8>(sizes, batch, rule.rows, activation, is_gradient);
        case 10:
            return plan_pass<kernel, pixels, 10>(sizes, batch, rule.rows, activation, is_gradient);
        default:
            return plan_pass<kernel, pixels, 4>(sizes, batch, rule.rows, activation, is_gradient);
    }
}

template <int kernel>
DirectPass plan_pixels(const ConvolutionSizes& sizes, std::int64_t batch, const DirectRule& rule, Activation activation,
                       bool is_gradient) {
    return rule.pixels == 4 ? plan_outputs<kernel, 4>(sizes, batch, rule, activation, is_gradient)
                            : plan_outputs<kernel, 1>(sizes, batch, rule, activation, is_gradient);
}

DirectPass plan_direct(const ConvolutionSizes& sizes, const ConvolutionShape& shape, bool is_gradient) {
    const DirectRule rule = rule_for(direct_rules, pixels_out(shape));
    switch (shape.kernel) {
        case 1:
            return plan_pixels<1>(sizes, shape.batch, rule, shape.activation, is_gradient);
        case 3:
            return plan_pixels<3>(sizes, shape.batch, rule, shape.activation, is_gradient);
        default:
            return plan_pixels<5>(sizes, shape.batch, rule, shape.activation, is_gradient);
    }
}

/// The planned gradient of the weights.
struct WeightPass {
    std::function<void(cudaStream_t, const float* x, const float* y, const float* grad_y, float* grads)> run;
    std::size_t shared_bytes = 0;
};

template <int kernel, int outputs>
WeightPass plan_weights(Stream* stream, const ConvolutionShape& shape, const DeviceFacts& facts) {
    using Kernel = DirectWeightGradient<kernel, outputs>;
    const WeightGradientRule rule = rule_for(weight_gradient_rules, pixels_out(shape));
    const ConvolutionSizes sizes = forward_sizes(shape);
    const int items = sizes.channels * kernel;
    const int slices = std::max(1, 256 / items);
    const int threads = round_up_to_warps(slices * items);
    const auto tile_of = [&](int height) { return tile_sizes(height, sizes.width_out + kernel - 1, kernel); };
    const int wanted = items < 8 ? std::max(rule.rows, rows_of_few_channels) : rule.rows;
    const int rows = rows_that_fit(std::min(wanted, sizes.height_out), [&](int height) {
        return Kernel::shared_floats(sizes, tile_of(height), threads) * sizeof(float);
    });
    const TileSizes tile = tile_of(rows);
    const int bands = parts_of(sizes.height_out, rows);
    const int piece = parts_of(sizes.width_out, parts_of(sizes.width_out, 8));
    const auto blocks = static_cast<int>(std::min<std::int64_t>(
        shape.batch * bands, std::int64_t{facts.multiprocessors} * rule.blocks_per_multiprocessor));
    const int count = sizes.channels_out * (items * kernel + 1);
    const std::size_t shared_bytes = Kernel::shared_floats(sizes, tile, threads) * sizeof(float);
    auto* partial = stream == nullptr
                        ? nullptr
                        : static_cast<float*>(stream->scratch(static_cast<std::size_t>(blocks) *
                                                              static_cast<std::size_t>(count) * sizeof(float)));
    const Kernel planned{.sizes = sizes,
                         .tile = tile,
                         .batch = whole(shape.batch),
                         .bands = bands,
                         .piece = piece,
                         .slices = slices,
                         .activation = shape.activation,
                         .x = nullptr,
                         .y = nullptr,
                         .grad_y = nullptr,
                         .partial = partial};
    auto run = [=](cudaStream_t line, const float* x, const float* y, const float* grad_y, float* grads) {
        Kernel kernel_now = planned;
        kernel_now.x = x;
        kernel_now.y = y;
        kernel_now.grad_y = grad_y;
        FINCH_CUDA(launch(line, {.blocks_x = blocks, .threads = threads, .shared_bytes = shared_bytes}, kernel_now));
        FINCH_CUDA(launch(line, {.blocks_x = parts_of(count, 32), .threads = 256, .shared_bytes = 256 * sizeof(float)},
                          AddPartials{.partial = partial, .rows = blocks, .count = count, .sums = grads}));
    };
    return {run, shared_bytes};
}

template <int kernel>
WeightPass plan_weights(Stream* stream, const ConvolutionShape& shape, const DeviceFacts& facts) {
    if (shape.channels_out <= 4) {
        return plan_weights<kernel, 4>(stream, shape, facts);
    }
    if (shape.channels_out <= 8) {
        return plan_weights<kernel, 8>(stream, shape, facts);
    }
    if (shape.channels_out <= 10) {
        return plan_weights<kernel, 10>(stream, shape, facts);
    }
    return plan_weights<kernel, 16>(stream, shape, facts);
}

WeightPass plan_weights(Stream* stream, const ConvolutionShape& shape, const DeviceFacts& facts) {
    switch (shape.kernel) {
        case 1:
            return plan_weights<1>(stream, shape, facts);
        case 3:
            return plan_weights<3>(stream, shape, facts);
        default:
            return plan_weights<5>(stream, shape, facts);
    }
}

class DirectConvolutionOperation : public Operation {
public:
    DirectConvolutionOperation(Stream& stream, const ConvolutionShape& shape)
        : stream_(stream),
          needs_input_grad_(shape.needs_input_grad),
          forward_(plan_direct(forward_sizes(shape), shape, false)),
          gradient_(plan_direct(gradient_sizes(shape), shape, true)),
          weights_(plan_weights(&stream, shape, stream.facts())) {}

    void pack(const float* parameters) override { parameters_ = parameters; }
    void forward(const float* x, float* y) override {
        forward_.run(stream_.get(), {.x = x, .slope_of = nullptr, .parameters = parameters_, .y = y});
    }
    void backward(const float* x, const float* y, float* grad_y, float* grad_x, float* grad_parameters) override {
        weights_.run(stream_.get(), x, y, grad_y, grad_parameters);
        if (needs_input_grad_) {
            gradient_.run(stream_.get(), {.x = grad_y, .slope_of = y, .parameters = parameters_, .y = grad_x});
        }
    }
    [[nodiscard]] std::string implementation() const override { return forward_.name; }

private:
    Stream& stream_;
    bool needs_input_grad_;
    DirectPass forward_;
    DirectPass gradient_;
    WeightPass weights_;
    const float* parameters_ = nullptr;  ///< canonical, read where they lie
};

}  // namespace

bool direct_convolution_suits(const ConvolutionShape& shape, const DeviceFacts& facts) {
    const bool kernel_fits = shape.kernel == 1 || shape.kernel == 3 || shape.kernel == 5;
    if (!kernel_fits || shape.stride != 1 || shape.channels_in > most_channels || shape.channels_out > most_channels ||
        shape.padding_before >= shape.kernel || shape.padding_after >= shape.kernel ||
        pixels_out(shape) > (std::int64_t{1} << 30)) {
        return false;
    }
    const std::size_t most = std::max({plan_direct(forward_sizes(shape), shape, false).shared_bytes,
                                       plan_direct(gradient_sizes(shape), shape, true).shared_bytes,
                                       plan_weights(nullptr, shape, facts).shared_bytes});
    return most <= facts.shared_bytes_most;
}

std::unique_ptr<Operation> make_direct_convolution(Stream& stream, const ConvolutionShape& shape) {
    return std::make_unique<DirectConvolutionOperation>(stream, shape);
}

}  // namespace finch::backend::cuda
