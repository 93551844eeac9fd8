#pragma once

#include <cmath>
#include <limits>

namespace finch::test {

/// Returns the nearest float16 number (ties to even): 10 bits of mantissa, multiples of 2⁻²⁴ below 2⁻¹⁴, infinite from
/// 65520 on.
inline float to_float16(float value) {
    const double size = std::abs(static_cast<double>(value));
    if (!(size < 65520)) {
        return std::isnan(value) ? value : std::copysign(std::numeric_limits<float>::infinity(), value);
    }
    const int unit = size < 0x1p-14 ? -24 : std::ilogb(size) - 10;
    return std::copysign(static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(size, -unit)), unit)), value);
}

}  // namespace finch::test
