#include "elementwise.hpp"
#include "vectorised.hpp"

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

}  // namespace

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

}  // namespace finch::backend::cpu
