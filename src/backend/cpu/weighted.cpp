#include "weighted.hpp"

#include "elementwise.hpp"
#include "rounding.hpp"

#include <utility>

namespace finch::backend::cpu {
void WeightedPlan::set_operands(bool in_bfloat16) {
    rounds = in_bfloat16;
    read_x = rounds ? rounded(x) : x;
    read_grad_y = rounds ? rounded(y) : y;
}

std::size_t WeightedPlan::copied_bytes() const noexcept {
    return rounds ? rounded_bytes(inputs) + rounded_bytes(outputs) : 0;
}

void WeightedPlan::make_reorders(const Library& library) {
    if (forward_weights != plain_weights) {
        to_forward.emplace(library, plain_weights, forward_weights);
    }
    if (backward_data && data_weights != plain_weights) {
        to_data.emplace(library, plain_weights, data_weights);
    }
    if (!own_gradient && weights_gradient != plain_weights) {
        to_plain.emplace(library, weights_gradient, plain_weights);
    }
}

WeightedOperation::WeightedOperation(const Library& library, Scratch& scratch, std::shared_ptr<const WeightedPlan> plan)
    : library_(library), scratch_(scratch), plan_(std::move(plan)) {
    scratch_.reserve(library_, plan_->copied_bytes());
    if (plan_->own_gradient) {
        own_gradient_.emplace(*plan_->own_gradient);
    }
    if (plan_->to_forward) {
        forward_weights_ = zeroed(library_, plan_->forward_weights);
    }
    if (plan_->to_data) {
        data_weights_ = zeroed(library_, plan_->data_weights);
    }
    if (plan_->to_plain) {
        weights_gradient_ = zeroed(library_, plan_->weights_gradient);
    }
}

void WeightedOperation::pack(const float* parameters, float* /*buffers*/) {
    parameters_ = parameters;
    const dnnl::memory plain = at(library_, plan_->plain_weights, parameters);
    plan_->to_forward ? plan_->to_forward->run(library_, plain, forward_weights_) : void(forward_weights_ = plain);
    if (plan_->backward_data) {
        plan_->to_data ? plan_->to_data->run(library_, plain, data_weights_) : void(data_weights_ = plain);
    }
}

void WeightedOperation::forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) {
    execute(library_, plan_->forward,
            {{DNNL_ARG_SRC, read_x(x[0])},
             {DNNL_ARG_WEIGHTS, forward_weights_},
             {DNNL_ARG_BIAS, at(library_, plan_->bias, parameters_ + plan_->weights)},
             {DNNL_ARG_DST, at(library_, plan_->y, y)}});
}

void WeightedOperation::backward(const Pass& pass, std::span<const float* const> x, const float* y, float* grad_y,
                                 std::span<float* const> grad_x, float* grad_parameters) {
    dnnl::memory grad;
    if (own_gradient_) {
        own_gradient_->run(pass, x[0], y, grad_y, grad_parameters);
        grad = at(library_, plan_->y, grad_y);
    } else {
        if (!pass.is_first_block) {
            scratch_.reserve(library_,
                             plan_->copied_bytes() + plan_->weights_gradient.get_size() + plan_->bias.get_size());
        }
        grad = read_grad_y(y, grad_y);
        backward_weights(pass, x[0], grad, grad_parameters);
    }
    if (plan_->backward_data) {
        execute(library_, *plan_->backward_data,
                {{DNNL_ARG_DIFF_DST, grad},
                 {DNNL_ARG_WEIGHTS, data_weights_},
                 {DNNL_ARG_DIFF_SRC, at(library_, plan_->x, grad_x[0])}});
    }
}

dnnl::memory WeightedOperation::read_x(const float* x) const {
    if (!plan_->rounds) {
        return at(library_, plan_->x, x);
    }
    auto* const copy = reinterpret_cast<Bfloat16*>(scratch_.data());
    round_to_bfloat16(x, copy, plan_->inputs);
    return at(library_, plan_->read_x, copy);
}

dnnl::memory WeightedOperation::read_grad_y(const float* y, float* grad_y) const {
    if (!plan_->rounds) {
        apply_derivative(plan_->activation, y, grad_y, plan_->outputs);
        return at(library_, plan_->y, grad_y);
    }
    auto* const copy = reinterpret_cast<Bfloat16*>(scratch_.data() + rounded_bytes(plan_->inputs));
    round_derivative(plan_->activation, y, grad_y, copy, plan_->outputs);
    return at(library_, plan_->read_grad_y, copy);
}

void WeightedOperation::backward_weights(const Pass& pass, const float* x, const dnnl::memory& grad_y,
                                         float* grad_parameters) {
    const dnnl::memory plain = at(library_, plan_->plain_weights, grad_parameters);
    const dnnl::memory& sums = plan_->to_plain ? weights_gradient_ : plain;
    const std::size_t floats = plan_->weights_gradient.get_size() / sizeof(float);
    auto* const sums_of_weights = static_cast<float*>(sums.get_data_handle());
    float* const sums_of_bias = grad_parameters + plan_->weights;
    // oneDNN overwrites its outputs.
    auto* const block = reinterpret_cast<float*>(scratch_.data() + plan_->copied_bytes());
    float* const weights = pass.is_first_block ? sums_of_weights : block;
    float* const bias = pass.is_first_block ? sums_of_bias : block + floats;
    execute(library_, plan_->backward_weights,
            {{DNNL_ARG_SRC, read_x(x)},
             {DNNL_ARG_DIFF_DST, grad_y},
             {DNNL_ARG_DIFF_WEIGHTS, at(library_, plan_->weights_gradient, weights)},
             {DNNL_ARG_DIFF_BIAS, at(library_, plan_->bias, bias)}});
    if (!pass.is_first_block) {
        accumulate(weights, sums_of_weights, floats);
        accumulate(bias, sums_of_bias, plan_->bias.get_size() / sizeof(float));
    }
    if (pass.is_last_block && plan_->to_plain) {
        plan_->to_plain->run(library_, weights_gradient_, plain);
    }
}

}  // namespace finch::backend::cpu
