#pragma once

#include <cstddef>
#include <kernel_launch.hpp>

namespace finch::backend::cuda {

/// The second kernel for the gradients of weights and biases. Adds the rows of `partial` (rows, count), always in the
/// same order. The number of threads must be a multiple of 32. Grid: x = groups(). Shared memory: shared_floats.
struct AddPartials {
    static constexpr int max_threads = 256;
    static constexpr int sharers = 8;  ///< threads that share a sum
    static constexpr int shared_floats = sharers * 32;
    const float* partial;
    int rows;
    int count;
    float* sums;

    [[nodiscard]] int groups() const { return (count + 31) / 32; }

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        add(thread, thread.block_x());
    }

    /// Computes 32 sums. Another kernel can call add() in blocks of its own.
    template <class Thread>
    FINCH_DEVICE void add(Thread& thread, int group) const {
        auto* shared = thread.template shared<float>();  // (sharers, 32)
        const int lane = thread.index() % 32;
        const int i = group * 32 + lane;
        for (int sharer = thread.index() / 32; sharer < sharers; sharer += thread.count() / 32) {
            float sum = 0.0F;
            if (i < count) {
                for (int row = sharer; row < rows; row += sharers) {
                    sum += partial[static_cast<std::size_t>(row) * static_cast<std::size_t>(count) +
                                   static_cast<std::size_t>(i)];
                }
            }
            shared[sharer * 32 + lane] = sum;
        }
        thread.sync();
        if (thread.index() < 32 && i < count) {
            float total = 0.0F;
            for (int sharer = 0; sharer < sharers; ++sharer) {
                total += shared[sharer * 32 + lane];
            }
            sums[i] = total;
        }
    }
};

}  // namespace finch::backend::cuda
