#include "finch/base/error.hpp"

#include "operations.hpp"
#include "own_convolution.hpp"
#include "rounding.hpp"
#include "weighted.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace finch::backend::cpu {

struct ConvolutionPlan : WeightedPlan {
    ConvolutionPlan(const Library& library, const ConvolutionShape& shape);

private:
    void plan_passes(const Library& library, const ConvolutionShape& shape, bool in_bfloat16);
};

namespace {

/// Returns oneDNN's first implementation, or its second implementation if that is known to be faster. Below 32
/// channels, oneDNN's older kernel is faster than its kernel that uses small matrix products. With batch 16 the times
/// are 135 instead of 158 µs for 10 → 10 channels, and 22 instead of 45 µs for 1 → 10 channels. In bfloat16 (batch 32)
/// the times are 178 instead of 229 µs and 64 instead of 177 µs.
template <class Description>
dnnl::convolution_forward::primitive_desc plan_forward(const Library& library, const ConvolutionShape& shape,
                                                       const Description& description) {
    const auto first = plan<dnnl::convolution_forward>(library, description, with(shape.activation));
    if (shape.channels_out < 32) {
        for (const auto& [slower, faster] : {std::pair{"brgconv:avx512_core", "jit:avx512_core"},
                                             {"brgconv:avx512_core_bf16", "jit_bf16:avx512_core_bf16"}}) {
            auto second = plan<dnnl::convolution_forward>(library, description, with(shape.activation));
            if (first.impl_info_str() == std::string_view(slower) && second.next_impl() &&
                second.impl_info_str() == std::string_view(faster)) {
                return second;
            }
        }
    }
    return first;
}

/// Returns oneDNN's first implementation, but skips its 1 x 1 kernel if the stride is above 1. With few channels, the 1
/// x 1 kernel writes past the end of its scratch memory (oneDNN 2.6.3 and 3.2.0, AVX2 and AVX-512, up to 12 channels,
/// seen with stride 2). With one thread the kernel overwrites other memory, with more threads also the sums of other
/// threads.
template <class Description>
dnnl::convolution_backward_weights::primitive_desc plan_weights(const Library& library, const ConvolutionShape& shape,
                                                                const Description& description,
                                                                const dnnl::convolution_forward::primitive_desc& hint) {
    auto sound = plan<dnnl::convolution_backward_weights>(library, description, hint);
    while (shape.stride > 1 && std::string_view(sound.impl_info_str()).starts_with("jit_1x1")) {
        if (!sound.next_impl()) {
            throw Error("oneDNN has no sound kernel for the gradient of a 1 x 1 convolution with a stride");
        }
    }
    return sound;
}

/// True if the shape may be computed in bfloat16. Depthwise convolutions are excluded: they take 1.3 times as long in
/// bfloat16 as in float32 (bench_operations).
bool may_round(const ConvolutionShape& shape) {
    const bool is_depthwise = shape.groups > 1 && shape.groups == shape.channels_in;
    return shape.precision == Precision::bfloat16 && has_bfloat16() && !is_depthwise;
}

std::size_t inputs_of(const ConvolutionShape& shape) {
    return static_cast<std::size_t>(shape.batch * shape.height * shape.width * shape.channels_in);
}
std::size_t outputs_of(const ConvolutionShape& shape) {
    return static_cast<std::size_t>(shape.batch * shape.height_out() * shape.width_out() * shape.channels_out);
}

dnnl::memory::dims weights_shape(const ConvolutionShape& shape) {
    const std::int64_t groups = shape.groups;
    return groups > 1 ? dnnl::memory::dims{groups, shape.channels_out / groups, shape.channels_in / groups,
                                           shape.kernel, shape.kernel}
                      : dnnl::memory::dims{shape.channels_out, shape.channels_in, shape.kernel, shape.kernel};
}

}  // namespace

ConvolutionPlan::ConvolutionPlan(const Library& library, const ConvolutionShape& shape) {
    x = floats({shape.batch, shape.channels_in, shape.height, shape.width}, Tag::nhwc);
    y = floats({shape.batch, shape.channels_out, shape.height_out(), shape.width_out()}, Tag::nhwc);
    bias = floats({shape.channels_out}, Tag::x);
    plain_weights = floats(weights_shape(shape), shape.groups > 1 ? Tag::goihw : Tag::oihw);
    activation = shape.activation;
    weights = static_cast<std::size_t>(shape.weights());
    inputs = inputs_of(shape);
    outputs = outputs_of(shape);
    plan_passes(library, shape, may_round(shape));
    // For some shapes oneDNN's only bfloat16 kernels are its slowest ones.
    if (rounds && implementation.find("gemm") != std::string::npos) {
        plan_passes(library, shape, false);
    }
    make_reorders(library);
}

void ConvolutionPlan::plan_passes(const Library& library, const ConvolutionShape& shape, bool in_bfloat16) {
    using dnnl::memory;
    // `auto` would choose oneDNN's Winograd kernels for batches of 64 and more; they are slower here
    // (bench_operations).
    constexpr auto direct = dnnl::algorithm::convolution_direct;
    const memory::dims strides{shape.stride, shape.stride};
    const memory::dims between{shape.dilation - 1, shape.dilation - 1};
    const memory::dims before{shape.padding_before, shape.padding_before};
    const memory::dims after{shape.padding_after, shape.padding_after};
    set_operands(in_bfloat16);
    const memory::desc free_gradient = floats(weights_shape(shape), Tag::any);
    const memory::desc free_weights = in_bfloat16 ? rounded(free_gradient) : free_gradient;

    const auto forward_desc = describe<dnnl::convolution_forward>(
        dnnl::prop_kind::forward_training, direct, read_x, free_weights, bias, y, strides, between, before, after);
    const auto weights_desc = describe<dnnl::convolution_backward_weights>(
        direct, read_x, free_gradient, bias, read_grad_y, strides, between, before, after);
    const auto forward_plan = plan_forward(library, shape, forward_desc);
    const auto hint = plan<dnnl::convolution_forward>(library, forward_desc, with(Activation::none));
    const auto weights_plan = plan_weights(library, shape, weights_desc, hint);
    forward = dnnl::convolution_forward(forward_plan);
    implementation = (rounds ? "bfloat16: " : "") + std::string(forward_plan.impl_info_str()) + ", ";
    backward_weights = dnnl::convolution_backward_weights(weights_plan);
    forward_weights = forward_plan.weights_desc();
    weights_gradient = weights_plan.diff_weights_desc();
    if (!in_bfloat16 && ConvolutionGradient::suits(shape)) {
        own_gradient = shape;
        implementation += std::string("finch:direct:") + kernels().name;
    } else {
        implementation += weights_plan.impl_info_str();
    }
    if (shape.needs_input_grad) {
        const auto data_desc = describe<dnnl::convolution_backward_data>(direct, x, free_weights, read_grad_y, strides,
                                                                         between, before, after);
        const auto data_plan = plan<dnnl::convolution_backward_data>(library, data_desc, hint);
        backward_data = dnnl::convolution_backward_data(data_plan);
        data_weights = data_plan.weights_desc();
        implementation += std::string(", ") + data_plan.impl_info_str();
    }
}

template <>
std::unique_ptr<Operation> make(const Library& library, Plans& plans, const ConvolutionShape& shape) {
    if (auto own = make_planes_convolution(shape)) {
        return own;
    }
    if (auto own = make_channels_convolution(shape)) {
        return own;
    }
    return std::make_unique<WeightedOperation>(library, plans.scratch, plans.convolutions.get(library, shape));
}

namespace {

std::optional<OwnMemory> own_memory(const ConvolutionShape& shape) {
    const auto planes = planes_memory(shape);
    return planes ? planes : channels_memory(shape);
}

constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));

}  // namespace

bool is_own_shape(const ConvolutionShape& shape) {
    return !may_round(shape) && shape.kernel == 3 && shape.stride == 1 && shape.groups == 1 && shape.dilation == 1 &&
           std::max(shape.padding_before, shape.padding_after) <= 2;
}

template <>
std::int64_t scratch_bytes(const ConvolutionShape& shape) {
    if (const auto own = own_memory(shape)) {
        return own->scratch * float_bytes;
    }
    return may_round(shape)
               ? static_cast<std::int64_t>(rounded_bytes(inputs_of(shape)) + rounded_bytes(outputs_of(shape)))
               : 0;
}

std::int64_t kept_bytes(const ConvolutionShape& shape) {
    constexpr std::int64_t counted = 3;  // weights, packed twice, and their gradient
    const auto own = own_memory(shape);
    return own ? std::max<std::int64_t>(0, own->kept - counted * shape.weights()) * float_bytes : 0;
}

}  // namespace finch::backend::cpu
