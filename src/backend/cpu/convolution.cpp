#include "operations.hpp"
#include "weighted.hpp"

namespace finch::backend::cpu {

struct ConvolutionPlan : WeightedPlan {
    ConvolutionPlan(const Library& library, const ConvolutionShape& shape);
};

namespace {

/// The plan that oneDNN puts first, or the second where that is known to be faster: below 32 channels its older kernel
/// beats the one by small matrix products (135 against 158 µs for 10 → 10, 22 against 45 µs for 1 → 10, batch 16).
dnnl::convolution_forward::primitive_desc plan_forward(const Library& library, const ConvolutionShape& shape,
                                                       const dnnl::convolution_forward::desc& description) {
    using Plan = dnnl::convolution_forward::primitive_desc;
    const Plan first(description, with(shape.activation), library.engine);
    if (shape.channels_out < 32 && first.impl_info_str() == std::string("brgconv:avx512_core")) {
        Plan second(description, with(shape.activation), library.engine);
        if (second.next_impl() && second.impl_info_str() == std::string("jit:avx512_core")) {
            return second;
        }
    }
    return first;
}

}  // namespace

ConvolutionPlan::ConvolutionPlan(const Library& library, const ConvolutionShape& shape) {
    using dnnl::memory;
    // `auto` would pick Winograd from batch 64 on, which is slower here (docs/measurements.md).
    constexpr auto direct = dnnl::algorithm::convolution_direct;
    const bool is_grouped = shape.groups > 1;
    const memory::dims weights_shape =
        is_grouped ? memory::dims{shape.groups, shape.channels_out / shape.groups, shape.channels_in / shape.groups,
                                  shape.kernel, shape.kernel}
                   : memory::dims{shape.channels_out, shape.channels_in, shape.kernel, shape.kernel};
    const memory::dims strides{shape.stride, shape.stride};
    const memory::dims between{shape.dilation - 1, shape.dilation - 1};
    const memory::dims before{shape.padding_before, shape.padding_before};
    const memory::dims after{shape.padding_after, shape.padding_after};
    x = floats({shape.batch, shape.channels_in, shape.height, shape.width}, Tag::nhwc);
    y = floats({shape.batch, shape.channels_out, shape.height_out(), shape.width_out()}, Tag::nhwc);
    bias = floats({shape.channels_out}, Tag::x);
    plain_weights = floats(weights_shape, is_grouped ? Tag::goihw : Tag::oihw);
    const memory::desc free_weights = floats(weights_shape, Tag::any);
    activation = shape.activation;
    weights = static_cast<std::size_t>(shape.weights());
    outputs = static_cast<std::size_t>(shape.batch * shape.channels_out * shape.height_out() * shape.width_out());

    const dnnl::convolution_forward::desc forward_desc(dnnl::prop_kind::forward_training, direct, x, free_weights, bias,
                                                       y, strides, between, before, after);
    const auto forward_plan = plan_forward(library, shape, forward_desc);
    // The backward passes ask for a forward plan as a hint; it is one without the activation, as they see it.
    const dnnl::convolution_forward::primitive_desc hint(forward_desc, library.engine);
    const dnnl::convolution_backward_weights::primitive_desc weights_plan(
        {direct, x, free_weights, bias, y, strides, between, before, after}, library.engine, hint);
    forward = dnnl::convolution_forward(forward_plan);
    backward_weights = dnnl::convolution_backward_weights(weights_plan);
    forward_weights = forward_plan.weights_desc();
    weights_gradient = weights_plan.diff_weights_desc();
    implementation = std::string(forward_plan.impl_info_str()) + ", ";
    if (ConvolutionGradient::suits(shape)) {
        own_backward_weights.emplace(shape);
        implementation += "finch:avx512f";
    } else {
        implementation += weights_plan.impl_info_str();
    }
    if (shape.needs_input_grad) {
        const dnnl::convolution_backward_data::primitive_desc data_plan(
            {direct, x, free_weights, y, strides, between, before, after}, library.engine, hint);
        backward_data = dnnl::convolution_backward_data(data_plan);
        data_weights = data_plan.weights_desc();
        implementation += std::string(", ") + data_plan.impl_info_str();
    }
    make_reorders(library);
}

template <>
std::unique_ptr<Operation> make(const Library& library, Plans& plans, const ConvolutionShape& shape) {
    return std::make_unique<WeightedOperation>(library, plans.convolutions.get(library, shape));
}

}  // namespace finch::backend::cpu
