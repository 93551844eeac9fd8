#pragma once

#include "finch/backend/planes.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

namespace finch::backend::cuda {

/// Calls `use` with std::type_identity of the C++ type of `type`, which must be float32 or bfloat16.
template <class Use>
auto with_number(TensorType type, Use use) {
    return type == TensorType::bfloat16 ? use(std::type_identity<__nv_bfloat16>()) : use(std::type_identity<float>());
}

/// Like with_number(), also for float16.
template <class Use>
auto with_any_number(TensorType type, Use use) {
    return type == TensorType::float16 ? use(std::type_identity<__half>()) : with_number(type, use);
}

/// Calls `use` with the std::integral_constant of `value`, which must be one of the ints.
template <int first, int... others, class Use>
auto with_int(int value, const Use& use) {
    if constexpr (sizeof...(others) > 0) {
        if (value != first) {
            return with_int<others...>(value, use);
        }
    }
    return use(std::integral_constant<int, first>());
}

}  // namespace finch::backend::cuda
