#pragma once

#include "finch/backend/dropout_mask.hpp"

#include "step_row.hpp"

#include <cstdint>
#include <kernel_launch.hpp>

namespace finch::backend::cuda {

/// y = x times the mask of the present step, over (batch, features). Each thread does four values of a sample, which
/// share their random bits.
struct Dropout {
    static constexpr int max_threads = 256;
    const StepState* state;
    DropoutMask mask;  ///< without its key
    const float* x;
    float* y;
    std::int64_t batch;
    std::int64_t features;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        DropoutMask present = mask;
        present.key = state->current.random_key;
        const std::int64_t first = state->current.first_sample;
        const std::int64_t blocks = (features + 3) / 4;  // of a sample
        for (std::int64_t i = thread.global_index(); i < batch * blocks; i += thread.global_count()) {
            const std::int64_t sample = i / blocks;
            const std::int64_t block = i - sample * blocks;
            const PhiloxCounter words = present.words(first + sample, static_cast<std::uint32_t>(block));
            const std::int64_t at = sample * features;
            FINCH_UNROLL for (int k = 0; k < 4; ++k) {
                const std::int64_t feature = 4 * block + k;
                if (feature < features) {
                    y[at + feature] = x[at + feature] * present.factor(words.word[k]);
                }
            }
        }
    }
};

}  // namespace finch::backend::cuda
