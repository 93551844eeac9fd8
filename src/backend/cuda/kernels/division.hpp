#pragma once

#include "kernel_launch.hpp"

#include <cstdint>

namespace finch::backend::cuda {

/// A positive divisor that is known only at run time, with a factor for divisions by multiplication. A GPU has no
/// instruction for integer division. The quotients are exact for dividend · divisor < 2³¹.
struct Divisor {
    int number;
    std::uint32_t factor;  ///< 2³¹ / number, rounded up
};

inline Divisor divisor(int number) {
    constexpr std::uint32_t whole = std::uint32_t{1} << 31;
    return {.number = number, .factor = (whole - 1) / static_cast<std::uint32_t>(number) + 1};
}

/// `dividend` must not be negative.
[[nodiscard]] FINCH_DEVICE int operator/(int dividend, Divisor by) {
    return static_cast<int>(std::uint64_t{static_cast<std::uint32_t>(dividend)} * by.factor >> 31);
}

/// The row and column of an element in a matrix with `columns` columns. The division uses 32-bit numbers if possible,
/// because 32-bit division is much faster.
struct MatrixPlace {
    std::int64_t row;
    std::int64_t column;

    FINCH_DEVICE MatrixPlace(std::int64_t element, std::int64_t columns) {
        if (element <= 0xffffffffLL && columns <= 0xffffffffLL) {
            row = static_cast<unsigned>(element) / static_cast<unsigned>(columns);
            column = static_cast<unsigned>(element) % static_cast<unsigned>(columns);
        } else {
            row = element / columns;
            column = element % columns;
        }
    }
};

}  // namespace finch::backend::cuda
