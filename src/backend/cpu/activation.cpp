#include "finch/base/enum_words.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "elementwise.hpp"
#include "operations.hpp"

#include <string>
#include <utility>

namespace finch::backend::cpu {

/// The oneDNN plan of an activation that is a separate operation.
struct ActivationPlan {
    ActivationPlan(const Library& library, const ActivationShape& shape);

    dnnl::memory::desc values;
    dnnl::eltwise_forward forward;
    dnnl::eltwise_backward backward;
    std::string implementation;
};

namespace {

/// Returns oneDNN's algorithm for an activation, and the algorithm's parameter alpha.
std::pair<dnnl::algorithm, float> algorithm_of(Activation activation) {
    switch (activation) {
        case Activation::leaky_relu:
            return {dnnl::algorithm::eltwise_relu, leaky_slope};
        case Activation::gelu:
            return {dnnl::algorithm::eltwise_gelu_erf, 0.0F};
        case Activation::silu:
            return {dnnl::algorithm::eltwise_swish, 1.0F};
        case Activation::none:
        case Activation::relu:
        case Activation::sigmoid:
        case Activation::tanh:
            break;
    }
    throw Error(fmt::format("{} by oneDNN as an operation of its own", word(activation)));
}

class ActivationOperation : public Operation {
public:
    ActivationOperation(const Library& library, std::shared_ptr<const ActivationPlan> plan)
        : library_(library), plan_(std::move(plan)) {}

    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        execute(library_, plan_->forward,
                {{DNNL_ARG_SRC, at(library_, plan_->values, x[0])}, {DNNL_ARG_DST, at(library_, plan_->values, y)}});
    }
    void backward(const Pass& /*pass*/, std::span<const float* const> x, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        execute(library_, plan_->backward,
                {{DNNL_ARG_SRC, at(library_, plan_->values, x[0])},
                 {DNNL_ARG_DIFF_DST, at(library_, plan_->values, grad_y)},
                 {DNNL_ARG_DIFF_SRC, at(library_, plan_->values, grad_x[0])}});
    }
    [[nodiscard]] std::string implementation() const override { return plan_->implementation; }

private:
    const Library& library_;
    std::shared_ptr<const ActivationPlan> plan_;
};

}  // namespace

ActivationPlan::ActivationPlan(const Library& library, const ActivationShape& shape)
    : values(floats({shape.count}, Tag::x)) {
    const auto [algorithm, alpha] = algorithm_of(shape.activation);
    const auto [forward_plan, backward_plan] = plan_elementwise(library, algorithm, alpha, values);
    forward = dnnl::eltwise_forward(forward_plan);
    backward = dnnl::eltwise_backward(backward_plan);
    implementation = std::string(forward_plan.impl_info_str()) + ", " + backward_plan.impl_info_str();
}

template <>
std::unique_ptr<Operation> make(const Library& library, Plans& plans, const ActivationShape& shape) {
    if (!needs_its_input(shape.activation)) {
        return make_activation_loop(shape);
    }
    return std::make_unique<ActivationOperation>(library, plans.activations.get(library, shape));
}

}  // namespace finch::backend::cpu
