#pragma once

#include "finch/backend/planes.hpp"

#include <cuda_bf16.h>

namespace finch::backend::cuda {

/// Calls `use` with a value of NumberOf<type>, for a type in which activations are stored.
template <class Number>
struct NumberOf {
    using type = Number;
};
template <class Use>
auto with_number(TensorType type, Use use) {
    return type == TensorType::bfloat16 ? use(NumberOf<__nv_bfloat16>()) : use(NumberOf<float>());
}

}  // namespace finch::backend::cuda
