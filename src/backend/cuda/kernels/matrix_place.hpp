#pragma once

#include "kernel_launch.hpp"

#include <cstdint>

namespace finch::backend::cuda {

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
