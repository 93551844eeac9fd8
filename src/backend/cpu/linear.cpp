#include "operations.hpp"
#include "rounding.hpp"
#include "weighted.hpp"

namespace finch::backend::cpu {

struct LinearPlan : WeightedPlan {
    LinearPlan(const Library& library, const LinearShape& shape);
};

namespace {

/// True if the shape is computed in bfloat16. With fewer than 32 units bfloat16 is slower than float32: it takes 1.3
/// times as long with 10 units (bench_operations).
bool may_round(const LinearShape& shape) {
    return shape.precision == Precision::bfloat16 && has_bfloat16() && shape.units >= 32;
}

std::size_t inputs_of(const LinearShape& shape) {
    return static_cast<std::size_t>(shape.batch * shape.channels * shape.height * shape.width);
}
std::size_t outputs_of(const LinearShape& shape) {
    return static_cast<std::size_t>(shape.batch * shape.units);
}

}  // namespace

// For an image, oneDNN reads x in its NHWC layout and takes the weights as (units, C, H, W), the order of the canonical
// columns. Packing the weights therefore replaces a `flatten` of x.
LinearPlan::LinearPlan(const Library& library, const LinearShape& shape) {
    const bool image = shape.height * shape.width > 1;
    const dnnl::memory::dims x_shape = image
                                           ? dnnl::memory::dims{shape.batch, shape.channels, shape.height, shape.width}
                                           : dnnl::memory::dims{shape.batch, shape.channels};
    dnnl::memory::dims weights_shape = x_shape;
    weights_shape[0] = shape.units;
    x = floats(x_shape, image ? Tag::nhwc : Tag::nc);
    y = floats({shape.batch, shape.units}, Tag::nc);
    bias = floats({shape.units}, Tag::x);
    plain_weights = floats(weights_shape, image ? Tag::oihw : Tag::oi);
    set_operands(may_round(shape));
    const dnnl::memory::desc free_gradient = floats(weights_shape, Tag::any);
    const dnnl::memory::desc free_weights = rounds ? rounded(free_gradient) : free_gradient;
    activation = shape.activation;
    weights = static_cast<std::size_t>(shape.units * shape.channels * shape.height * shape.width);
    inputs = inputs_of(shape);
    outputs = outputs_of(shape);

    using Forward = dnnl::inner_product_forward;
    using BackwardWeights = dnnl::inner_product_backward_weights;
    const auto forward_desc = describe<Forward>(dnnl::prop_kind::forward_training, read_x, free_weights, bias, y);
    const auto forward_plan = plan<Forward>(library, forward_desc, with(activation));
    const auto hint = plan<Forward>(library, forward_desc, with(Activation::none));
    const auto weights_plan =
        plan<BackwardWeights>(library, describe<BackwardWeights>(read_x, free_gradient, bias, read_grad_y), hint);
    forward = dnnl::inner_product_forward(forward_plan);
    backward_weights = dnnl::inner_product_backward_weights(weights_plan);
    forward_weights = forward_plan.weights_desc();
    weights_gradient = weights_plan.diff_weights_desc();
    implementation =
        (rounds ? "bfloat16: " : "") + std::string(forward_plan.impl_info_str()) + ", " + weights_plan.impl_info_str();
    if (shape.needs_input_grad) {
        using BackwardData = dnnl::inner_product_backward_data;
        const auto data_plan = plan<BackwardData>(library, describe<BackwardData>(x, free_weights, read_grad_y), hint);
        backward_data = dnnl::inner_product_backward_data(data_plan);
        data_weights = data_plan.weights_desc();
        implementation += std::string(", ") + data_plan.impl_info_str();
    }
    make_reorders(library);
}

template <>
std::unique_ptr<Operation> make(const Library& library, Plans& plans, const LinearShape& shape) {
    return std::make_unique<WeightedOperation>(library, plans.scratch, plans.linears.get(library, shape));
}

template <>
std::int64_t scratch_bytes(const LinearShape& shape) {
    return may_round(shape)
               ? static_cast<std::int64_t>(rounded_bytes(inputs_of(shape)) + rounded_bytes(outputs_of(shape)))
               : 0;
}

}  // namespace finch::backend::cpu
