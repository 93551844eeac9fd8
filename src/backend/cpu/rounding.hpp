#pragma once

#include "finch/backend/operation.hpp"

#include <cstddef>
#include <cstdint>

namespace finch::backend::cpu {

/// The memory representation of a bfloat16 number.
using Bfloat16 = std::uint16_t;

/// True if this processor multiplies bfloat16 and the environment variable DNNL_MAX_CPU_ISA allows it. The instruction
/// set is AVX512-BF16, which every processor with AMX also has.
[[nodiscard]] bool has_bfloat16() noexcept;

/// Returns the size in bytes of a bfloat16 copy, rounded up to whole vectors.
[[nodiscard]] constexpr std::size_t rounded_bytes(std::size_t count) noexcept {
    constexpr std::size_t alignment = 64;
    return (count * sizeof(Bfloat16) + alignment - 1) / alignment * alignment;
}

// Call these functions only if has_bfloat16() is true. The functions round to nearest even. A NaN stays NaN, and
// denormals become 0.

void round_to_bfloat16(const float* from, Bfloat16* to, std::size_t count);
/// Computes the gradient before the activation from y and the gradient after the activation, and rounds it to bfloat16.
void round_derivative(Activation activation, const float* y, const float* grad_y, Bfloat16* to, std::size_t count);

}  // namespace finch::backend::cpu
