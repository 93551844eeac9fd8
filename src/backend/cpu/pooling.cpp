#include "operations.hpp"

#include <utility>

namespace finch::backend::cpu {

struct PoolingPlan {
    PoolingPlan(const Library& library, const PoolingShape& shape);
    dnnl::pooling_forward forward;
    dnnl::pooling_backward backward;
    dnnl::memory::desc x, y, workspace;
    std::string implementation;
};

namespace {

dnnl::algorithm algorithm_of(Pooling kind) {
    switch (kind) {
        case Pooling::max:
            return dnnl::algorithm::pooling_max;
        case Pooling::average:
            return dnnl::algorithm::pooling_avg_include_padding;
    }
    return dnnl::algorithm::undef;
}

}  // namespace

PoolingPlan::PoolingPlan(const Library& library, const PoolingShape& shape)
    : x(floats({shape.batch, shape.channels, shape.height, shape.width}, Tag::nhwc)),
      y(floats({shape.batch, shape.channels, shape.height_out(), shape.width_out()}, Tag::nhwc)) {
    const dnnl::algorithm kind = algorithm_of(shape.kind);
    const dnnl::memory::dims strides{shape.stride, shape.stride};
    const dnnl::memory::dims kernel{shape.kernel, shape.kernel};
    const dnnl::memory::dims before{shape.padding, shape.padding};
    // The padding at the end extends only as far as the windows reach. Input pixels beyond the last window are not
    // read.
    const auto behind = [&](std::int64_t out, std::int64_t in) {
        return (out - 1) * shape.stride + shape.kernel - in - shape.padding;
    };
    const dnnl::memory::dims after{behind(shape.height_out(), shape.height), behind(shape.width_out(), shape.width)};
    const dnnl::pooling_forward::primitive_desc forward_plan(
        {dnnl::prop_kind::forward_training, kind, x, y, strides, kernel, before, after}, library.engine);
    const dnnl::pooling_backward::primitive_desc backward_plan({kind, x, y, strides, kernel, before, after},
                                                               library.engine, forward_plan);
    forward = dnnl::pooling_forward(forward_plan);
    backward = dnnl::pooling_backward(backward_plan);
    workspace = forward_plan.workspace_desc();
    implementation = std::string(forward_plan.impl_info_str()) + ", " + backward_plan.impl_info_str();
}

namespace {

class PoolingOperation : public Operation {
public:
    PoolingOperation(const Library& library, std::shared_ptr<const PoolingPlan> plan)
        : library_(library), plan_(std::move(plan)), workspace_(zeroed(library, plan_->workspace)) {}
    void forward(const Pass& /*pass*/, std::span<const float* const> x, float* y) override {
        execute(library_, plan_->forward,
                {{DNNL_ARG_SRC, at(library_, plan_->x, x[0])},
                 {DNNL_ARG_DST, at(library_, plan_->y, y)},
                 {DNNL_ARG_WORKSPACE, workspace_}});
    }
    void backward(const Pass& /*pass*/, std::span<const float* const> /*x*/, const float* /*y*/, float* grad_y,
                  std::span<float* const> grad_x, float* /*grad_parameters*/) override {
        execute(library_, plan_->backward,
                {{DNNL_ARG_DIFF_DST, at(library_, plan_->y, grad_y)},
                 {DNNL_ARG_DIFF_SRC, at(library_, plan_->x, grad_x[0])},
                 {DNNL_ARG_WORKSPACE, workspace_}});
    }
    [[nodiscard]] std::string implementation() const override { return plan_->implementation; }

private:
    const Library& library_;
    std::shared_ptr<const PoolingPlan> plan_;
    dnnl::memory workspace_;  ///< index of each maximum; empty for averages
};

}  // namespace

template <>
std::unique_ptr<Operation> make(const Library& library, Plans& plans, const PoolingShape& shape) {
    return std::make_unique<PoolingOperation>(library, plans.poolings.get(library, shape));
}

}  // namespace finch::backend::cpu
