#pragma once

#include "kernel_launch.hpp"
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
            if (width == 4 && i >= first && i + width <= end) {
                update_four(numbers, i);
            } else {
                for (std::int64_t one = i < first ? first : i; one < i + width && one < end; ++one) {
                    update_one(numbers, one);
                }
            }
        }
    }

private:
    FINCH_DEVICE void update_one(const OptimizerScalars& numbers, std::int64_t i) const {
        float a = states >= 1 ? state_a[i] : 0.0F;
        float b = states >= 2 ? state_b[i] : 0.0F;
        Rule::update(numbers, grads[i], parameters[i], a, b);
        if (states >= 1) {
            state_a[i] = a;
        }
        if (states >= 2) {
            state_b[i] = b;
        }
    }

    FINCH_DEVICE void update_four(const OptimizerScalars& numbers, std::int64_t i) const {
        const float4 g = *reinterpret_cast<const float4*>(grads + i);
        float4 p = *reinterpret_cast<const float4*>(parameters + i);
        float4 a{};
        float4 b{};
        if (states >= 1) {
            a = *reinterpret_cast<const float4*>(state_a + i);
        }
        if (states >= 2) {
            b = *reinterpret_cast<const float4*>(state_b + i);
        }
        Rule::update(numbers, g.x, p.x, a.x, b.x);
        Rule::update(numbers, g.y, p.y, a.y, b.y);
        Rule::update(numbers, g.z, p.z, a.z, b.z);
        Rule::update(numbers, g.w, p.w, a.w, b.w);
        *reinterpret_cast<float4*>(parameters + i) = p;
        if (states >= 1) {
            *reinterpret_cast<float4*>(state_a + i) = a;
        }
        if (states >= 2) {
            *reinterpret_cast<float4*>(state_b + i) = b;
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
