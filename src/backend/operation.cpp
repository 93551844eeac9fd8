#include "finch/backend/operation.hpp"

namespace finch::backend {

bool backward_reads_input(const OperationShape& shape) noexcept {
    const auto* const activation = std::get_if<ActivationShape>(&shape);
    return std::holds_alternative<ConvolutionShape>(shape) || std::holds_alternative<LinearShape>(shape) ||
           std::holds_alternative<BatchNormShape>(shape) || std::holds_alternative<LayerNormShape>(shape) ||
           (activation != nullptr && needs_its_input(activation->activation));
}

bool backward_reads_output(const OperationShape& shape) noexcept {
    return std::visit(
        [](const auto& known) {
            if constexpr (requires { known.activation; }) {
                return known.activation != Activation::none && !needs_its_input(known.activation);
            } else {
                return false;
            }
        },
        shape);
}

std::int64_t kept_floats(const OperationShape& shape) noexcept {
    if (const auto* pooling = std::get_if<PoolingShape>(&shape)) {
        const std::int64_t outputs = pooling->batch * pooling->height_out() * pooling->width_out() * pooling->channels;
        return pooling->kind == Pooling::max ? outputs : 0;
    }
    if (const auto* norm = std::get_if<LayerNormShape>(&shape)) {
        return 4 * norm->batch;  // mean and deviation in double
    }
    const auto* norm = std::get_if<BatchNormShape>(&shape);
    return norm == nullptr ? 0 : 16 * norm->channels;  // sums, mean and deviation in double, four factors
}

}  // namespace finch::backend
