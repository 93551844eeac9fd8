#include "finch/backend/operation.hpp"

namespace finch::backend {

bool backward_reads_input(const OperationShape& shape) noexcept {
    return std::holds_alternative<ConvolutionShape>(shape) || std::holds_alternative<LinearShape>(shape) ||
           std::holds_alternative<BatchNormShape>(shape);
}

bool backward_reads_output(const OperationShape& shape) noexcept {
    return std::visit(
        [](const auto& known) {
            if constexpr (requires { known.activation; }) {
                return known.activation != Activation::none;
            } else {
                return false;
            }
        },
        shape);
}

std::int64_t kept_floats(const OperationShape& shape) noexcept {
    const auto* pooling = std::get_if<PoolingShape>(&shape);
    return pooling == nullptr || pooling->kind != Pooling::max
               ? 0
               : pooling->batch * pooling->height_out() * pooling->width_out() * pooling->channels;
}

}  // namespace finch::backend
