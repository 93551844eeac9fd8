#include "finch/backend/operation.hpp"

#include "finch/base/enum_words.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

namespace finch::backend {

FusedActivation fused(Activation activation) {
    const auto known = if_fused(activation);
    if (!known) {
        throw Error(fmt::format("{} is an operation by itself, not part of another", word(activation)));
    }
    return *known;
}

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
