#include "elementwise.hpp"
#include "vectorised.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

namespace finch::backend::cpu {
namespace {

template <class Rule, int states>
FINCH_VECTORISED void update(const OptimizerScalars& numbers, float* __restrict p, const float* __restrict grads,
                             float* __restrict state_a, float* __restrict state_b, std::size_t count) {
    const OptimizerScalars n = numbers;
    for (std::size_t i = 0; i < count; ++i) {
        float a = states >= 1 ? state_a[i] : 0.0F;
        float b = states >= 2 ? state_b[i] : 0.0F;
        Rule::update(n, grads[i], p[i], a, b);
        if (states >= 1) {
            state_a[i] = a;
        }
        if (states >= 2) {
            state_b[i] = b;
        }
    }
}

/// The number of partial sums. The order of the partial sums does not depend on the instruction set.
constexpr std::size_t lanes = 8;

FINCH_VECTORISED double sum_of_squares(const float* __restrict values, std::size_t count) {
    double sums[lanes] = {};
    const std::size_t whole = count / lanes * lanes;
    for (std::size_t i = 0; i < whole; i += lanes) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const auto value = static_cast<double>(values[i + lane]);
            sums[lane] += value * value;
        }
    }
    for (std::size_t i = whole; i < count; ++i) {
        sums[i - whole] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

FINCH_VECTORISED void scale(float* values, float factor, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        values[i] *= factor;
    }
}

FINCH_VECTORISED bool scale_and_look(float* values, float factor, std::size_t count) {
    constexpr std::uint32_t exponent = 0x7f800000U;  // all set if a number is not finite
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < count; ++i) {
        found |= (std::bit_cast<std::uint32_t>(values[i]) & exponent) == exponent ? 1U : 0U;
        values[i] *= factor;
    }
    return found == 0;
}

FINCH_VECTORISED void take_up(const float* __restrict values, float* __restrict averages, float share,
                              std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        averages[i] = averaged(averages[i], values[i], share);
    }
}

}  // namespace

bool unscale(float* grads, float inverse, std::size_t count) {
    return scale_and_look(grads, inverse, count);
}

void clip_norm(float* grads, std::size_t count, double most) {
    const double factor = most / (std::sqrt(sum_of_squares(grads, count)) + 1e-6);
    if (!(factor >= 1)) {
        scale(grads, static_cast<float>(factor), count);
    }
}

void optimizer_step(const Optimizer& optimizer, const OptimizerScalars& scalars, float* parameters, const float* grads,
                    float* state_a, float* state_b, std::size_t count) {
    std::visit(
        [&]<class Rule>(const Rule& rule) {
            switch (rule.states()) {
                case 0:
                    return update<Rule, 0>(scalars, parameters, grads, state_a, state_b, count);
                case 1:
                    return update<Rule, 1>(scalars, parameters, grads, state_a, state_b, count);
                default:
                    return update<Rule, 2>(scalars, parameters, grads, state_a, state_b, count);
            }
        },
        optimizer);
}

void average(const float* values, float* averages, float share, std::size_t count) {
    take_up(values, averages, share, count);
}

}  // namespace finch::backend::cpu
