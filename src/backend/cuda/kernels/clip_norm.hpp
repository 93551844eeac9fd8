#pragma once

#include "kernel_launch.hpp"
#include "kernels/numbers.hpp"

#include <cmath>
#include <cstdint>

// Scaling of gradients by their norm. The sums are double and have a fixed order.
namespace finch::backend::cuda {

/// The kernel that computes one element of `partial` per block: the sum of value² over the block's part, added as a
/// tree. The number of threads per block must be a power of two. Shared memory: one double per thread.
struct SquareSums {
    static constexpr int max_threads = 256;
    static constexpr int most_blocks = 512;
    const float* values;
    std::int64_t count;
    double* partial;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        double sum = 0;
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
        }
        sum = block_sum(thread, sum, thread.template shared<double>());
        if (thread.index() == 0) {
            partial[thread.block_x()] = sum;
        }
    }
};

/// The kernel that scales the values to the norm `most`. Every thread adds the partial sums itself, because there are
/// only few partial sums. Shared memory: the partial sums.
struct ScaleToNorm {
    static constexpr int max_threads = 256;
    float* values;
    std::int64_t count;
    double most;
    int parts;
    const double* partial;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        auto* shared = thread.template shared<double>();
        for (int part = thread.index(); part < parts; part += thread.count()) {
            shared[part] = partial[part];
        }
        thread.sync();
        double sum = 0;
        for (int part = 0; part < parts; ++part) {
            sum += shared[part];
        }
        const double factor = most / (std::sqrt(sum) + 1e-6);
        if (factor >= 1) {
            return;
        }
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            values[i] *= static_cast<float>(factor);
        }
    }
};

}  // namespace finch::backend::cuda
