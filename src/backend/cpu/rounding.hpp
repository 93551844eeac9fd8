#pragma once

#include "finch/backend/operation.hpp"

#include <cstddef>
#include <cstdint>

namespace finch::backend::cpu {

/// A number of bfloat16, as it lies in memory.
using Bfloat16 = std::uint16_t;

/// Whether this processor multiplies bfloat16: AVX512-BF16, which every processor with AMX has too. What oneDNN's own
/// DNNL_MAX_CPU_ISA forbids is not done here either.
[[nodiscard]] bool has_bfloat16() noexcept;

/// Bytes of a rounded copy, up to the next whole vector.
[[nodiscard]] constexpr std::size_t rounded_bytes(std::size_t count) noexcept {
    constexpr std::size_t alignment = 64;
    return (count * sizeof(Bfloat16) + alignment - 1) / alignment * alignment;
}

// Only where has_bfloat16(). To nearest even; NaN stays NaN, denormals become 0.

void round_to_bfloat16(const float* from, Bfloat16* to, std::size_t count);
/// The gradient before the activation, given y and its gradient behind it.
void round_derivative(Activation activation, const float* y, const float* grad_y, Bfloat16* to, std::size_t count);

}  // namespace finch::backend::cpu
