#pragma once

#include "kernel_launch.hpp"

#include <algorithm>
#include <cstddef>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

namespace finch::backend::cuda {

/// Neighbouring numbers that a thread reads or writes at once, at most 16 bytes per instruction. A number is float,
/// __nv_bfloat16 or __half. CUDA's conversions round to nearest even; values beyond the range of __half become
/// infinite.
template <class Number, int width>
struct alignas(std::min(std::size_t{16}, width * sizeof(Number))) Vector {
    Number numbers[width];

    /// Returns number k as a float.
    [[nodiscard]] FINCH_DEVICE float at(int k) const { return static_cast<float>(numbers[k]); }
    FINCH_DEVICE void set(int k, float value) { numbers[k] = static_cast<Number>(value); }
};

/// Reads `width` numbers. `from` must be aligned like a Vector, as for store().
template <int width, class Number>
[[nodiscard]] FINCH_DEVICE Vector<Number, width> load(const Number* from) {
    return *reinterpret_cast<const Vector<Number, width>*>(from);
}
template <class Number, int width>
FINCH_DEVICE void store(const Vector<Number, width>& numbers, Number* to) {
    *reinterpret_cast<Vector<Number, width>*>(to) = numbers;
}

/// How many numbers a thread reads at once in kernels over activations: 16 bytes of bfloat16. The kernels for float32
/// accept any number of channels.
template <class... Numbers>
inline constexpr int width_of = (std::is_same_v<Numbers, float> && ...) ? 1 : 8;

/// Returns, in each thread of a block, the sum of `value` over the block's threads. The number of threads must be a
/// power of two. `shared` must have one double per thread.
template <class Thread>
[[nodiscard]] FINCH_DEVICE double block_sum(Thread& thread, double value, double* shared) {
    shared[thread.index()] = value;
    for (int half = thread.count() / 2; half > 0; half /= 2) {
        thread.sync();
        if (thread.index() < half) {
            shared[thread.index()] += shared[thread.index() + half];
        }
    }
    thread.sync();
    const double sum = shared[0];
    thread.sync();  // before it is used again
    return sum;
}

}  // namespace finch::backend::cuda
