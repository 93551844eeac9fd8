#pragma once

#include "feed_row.hpp"

#include <cmath>
#include <cstdint>
#include <kernel_launch.hpp>

namespace finch::backend::cuda {

// The rules update one parameter `p` from its gradient `g` and its state `a`, `b`, of which they have `states`. Their
// formulas are those of the CPU backend.

struct SgdRule {
    static constexpr int states = 0;
    FINCH_DEVICE static void update(const FeedRow& n, float g, float& p, float&, float&) {
        p -= n.rate * (g + n.weight_decay * p);
    }
};

struct SgdMomentumRule {
    static constexpr int states = 1;
    FINCH_DEVICE static void update(const FeedRow& n, float grad, float& p, float& a, float&) {
        const float g = grad + n.weight_decay * p;
        a = n.first != 0 ? g : n.momentum * a + g;
        p -= n.rate * (n.nesterov != 0 ? g + n.momentum * a : a);
    }
};

struct AdamRule {
    static constexpr int states = 2;
    FINCH_DEVICE static void update(const FeedRow& n, float grad, float& p, float& a, float& b) {
        const float old = p * n.keep;
        const float g = grad + n.weight_decay * old;
        a = n.beta1 * a + n.rest1 * g;
        b = n.beta2 * b + n.rest2 * g * g;
        p = old - n.rate * a / (std::sqrt(b) / n.root_correction + n.epsilon);
    }
};

struct AdadeltaRule {
    static constexpr int states = 2;
    FINCH_DEVICE static void update(const FeedRow& n, float grad, float& p, float& a, float& b) {
        const float g = grad + n.weight_decay * p;
        a = n.rho * a + n.rest * g * g;
        const float update = std::sqrt(b + n.epsilon) / std::sqrt(a + n.epsilon) * g;
        b = n.rho * b + n.rest * update * update;
        p -= n.rate * update;
    }
};

/// One step over the flat arena. Each thread updates `width` parameters in a row; with 4, all arrays are aligned to 16
/// bytes.
template <class Rule, int width>
struct OptimizerUpdate {
    static constexpr int max_threads = 256;
    const FeedState* state;
    float* parameters;
    const float* grads;
    float* state_a;  ///< null where the rule has no such state
    float* state_b;
    std::int64_t count;

    template <class Thread>
    FINCH_DEVICE void operator()(Thread& thread) const {
        const FeedRow numbers = state->current;
        const std::int64_t groups = (count + width - 1) / width;
        for (std::int64_t group = thread.global_index(); group < groups; group += thread.global_count()) {
            const std::int64_t begin = group * width;
            if (width == 4 && begin + width <= count) {
                update_four(numbers, begin);
            } else {
                for (std::int64_t i = begin; i < begin + width && i < count; ++i) {
                    update_one(numbers, i);
                }
            }
        }
    }

private:
    FINCH_DEVICE void update_one(const FeedRow& numbers, std::int64_t i) const {
        float a = Rule::states >= 1 ? state_a[i] : 0.0F;
        float b = Rule::states >= 2 ? state_b[i] : 0.0F;
        Rule::update(numbers, grads[i], parameters[i], a, b);
        if (Rule::states >= 1) {
            state_a[i] = a;
        }
        if (Rule::states >= 2) {
            state_b[i] = b;
        }
    }

    FINCH_DEVICE void update_four(const FeedRow& numbers, std::int64_t i) const {
        const float4 g = *reinterpret_cast<const float4*>(grads + i);
        float4 p = *reinterpret_cast<const float4*>(parameters + i);
        float4 a{};
        float4 b{};
        if (Rule::states >= 1) {
            a = *reinterpret_cast<const float4*>(state_a + i);
        }
        if (Rule::states >= 2) {
            b = *reinterpret_cast<const float4*>(state_b + i);
        }
        Rule::update(numbers, g.x, p.x, a.x, b.x);
        Rule::update(numbers, g.y, p.y, a.y, b.y);
        Rule::update(numbers, g.z, p.z, a.z, b.z);
        Rule::update(numbers, g.w, p.w, a.w, b.w);
        *reinterpret_cast<float4*>(parameters + i) = p;
        if (Rule::states >= 1) {
            *reinterpret_cast<float4*>(state_a + i) = a;
        }
        if (Rule::states >= 2) {
            *reinterpret_cast<float4*>(state_b + i) = b;
        }
    }
};

}  // namespace finch::backend::cuda
