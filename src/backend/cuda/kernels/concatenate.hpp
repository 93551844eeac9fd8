#pragma once

#include <cstdint>
#include <kernel_launch.hpp>

namespace finch::backend::cuda {

/// y (rows, first + second) from a (rows, first) and b (rows, second).
struct Concatenate {
    static constexpr int max_threads = 256;
    std::int64_t rows, first, second;
    const float* a;
    const float* b;
    float* y;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t both = first + second;
        for (std::int64_t i = thread.global_index(); i < rows * both; i += thread.global_count()) {
            const std::int64_t row = i / both;
            const std::int64_t column = i % both;
            y[i] = column < first ? a[row * first + column] : b[row * second + column - first];
        }
    }
};

/// And back; either gradient may be null.
struct Split {
    static constexpr int max_threads = 256;
    std::int64_t rows, first, second;
    const float* grad_y;
    float* grad_a;
    float* grad_b;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const std::int64_t both = first + second;
        for (std::int64_t i = thread.global_index(); i < rows * both; i += thread.global_count()) {
            const std::int64_t row = i / both;
            const std::int64_t column = i % both;
            if (column < first && grad_a != nullptr) {
                grad_a[row * first + column] = grad_y[i];
            } else if (column >= first && grad_b != nullptr) {
                grad_b[row * second + column - first] = grad_y[i];
            }
        }
    }
};

}  // namespace finch::backend::cuda
