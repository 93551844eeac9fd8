#pragma once

#include "kernel_launch.hpp"
#include "kernels/numbers.hpp"
#include "step_row.hpp"

#include <cstdint>

namespace finch::backend::cuda {

inline constexpr int most_ranges = 64;  ///< of a launch

/// The kernel for one step of an optimizer (finch/backend/optimizer.hpp) over ranges of the flat arena of the
/// parameters. If the step is skipped, the kernel changes nothing. Each thread updates `width` consecutive parameters.
/// If `width` is 4, all arrays must be aligned to 16 bytes. Grid: x = first_block[most_ranges].
template <class Rule, int states, int width>
struct OptimizerUpdate {
    static constexpr int max_threads = 256;
    const StepState* state;
    ParameterRange ranges[most_ranges];
    int first_block[most_ranges + 1];  ///< of each range; after the last range the number of all blocks
    float* parameters;
    const float* grads;
    float* state_a;  ///< null if there is no such state
    float* state_b;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        if (state->loss_scale.skips != 0) {
            return;
        }
        int number = 0;  // of the range
        for (int step = most_ranges / 2; step > 0; step /= 2) {
            number += thread.block_x() >= first_block[number + step] ? step : 0;
        }
        const ParameterRange& range = ranges[number];
        const std::int64_t block = thread.block_x() - first_block[number];
        const std::int64_t blocks = first_block[number + 1] - first_block[number];
        const auto first = static_cast<std::int64_t>(range.begin);
        const auto end = static_cast<std::int64_t>(range.begin + range.size);
        const OptimizerScalars numbers =
            range.decays ? state->current.optimizer : without_decay(state->current.optimizer);
        for (std::int64_t i = first / width * width + (block * thread.count() + thread.index()) * width; i < end;
             i += blocks * thread.count() * width) {
            if (i >= first && i + width <= end) {
                update<width>(numbers, i);
            } else {
                for (std::int64_t one = i < first ? first : i; one < i + width && one < end; ++one) {
                    update<1>(numbers, one);
                }
            }
        }
    }

private:
    /// Updates `count` parameters from number i.
    template <int count>
    FINCH_DEVICE void update(const OptimizerScalars& numbers, std::int64_t i) const {
        const auto g = load<count>(grads + i);
        auto p = load<count>(parameters + i);
        auto a = states >= 1 ? load<count>(state_a + i) : Vector<float, count>{};
        auto b = states >= 2 ? load<count>(state_b + i) : Vector<float, count>{};
        FINCH_UNROLL for (int k = 0; k < count; ++k) {
            Rule::update(numbers, g.numbers[k], p.numbers[k], a.numbers[k], b.numbers[k]);
        }
        store(p, parameters + i);
        if (states >= 1) {
            store(a, state_a + i);
        }
        if (states >= 2) {
            store(b, state_b + i);
        }
    }
};

/// The kernel that applies averaged() to `averages` and `values` with the current step's average_share. If the step is
/// skipped, the kernel changes nothing.
struct AverageUpdate {
    static constexpr int max_threads = 256;
    const StepState* state;
    const float* values;
    float* averages;
    std::int64_t count;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        if (state->loss_scale.skips != 0) {
            return;
        }
        const float share = state->current.average_share;
        for (std::int64_t i = thread.global_index(); i < count; i += thread.global_count()) {
            averages[i] = averaged(averages[i], values[i], share);
        }
    }
};

}  // namespace finch::backend::cuda
