#include "finch/backend/operation.hpp"

namespace finch::backend {

bool backward_reads_input(const OperationShape& shape) noexcept {
    return std::visit([](const auto& known) { return known.backward_reads_input(); }, shape);
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

std::int64_t saved_floats(const OperationShape& shape) noexcept {
    return std::visit(
        [](const auto& known) -> std::int64_t {
            if constexpr (requires { known.saved_floats(); }) {
                return known.saved_floats();
            } else {
                return 0;
            }
        },
        shape);
}

}  // namespace finch::backend
