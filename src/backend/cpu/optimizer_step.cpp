#include "loops.hpp"
#include "vectorised.hpp"

#include <cmath>

namespace finch::backend::cpu {
namespace {

FINCH_VECTORISED void sgd(const SgdStep& step, float* __restrict p, const float* __restrict grads,
                          float* __restrict buffer, std::size_t count) {
    const float rate = step.learning_rate;
    const float momentum = step.momentum;
    const float decay = step.weight_decay;
    for (std::size_t i = 0; i < count; ++i) {
        const float g = grads[i] + decay * p[i];
        const float b = step.first ? g : momentum * buffer[i] + g;
        buffer[i] = b;
        p[i] -= rate * (step.nesterov ? g + momentum * b : b);
    }
}

FINCH_VECTORISED void plain_sgd(const SgdStep& step, float* __restrict p, const float* __restrict grads,
                                std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        p[i] -= step.learning_rate * (grads[i] + step.weight_decay * p[i]);
    }
}

FINCH_VECTORISED void adam(const AdamStep& step, float rate, float root_correction, float* __restrict p,
                           const float* __restrict grads, float* __restrict first, float* __restrict second,
                           std::size_t count) {
    const float keep = step.decoupled ? 1.0F - step.learning_rate * step.weight_decay : 1.0F;
    const float decay = step.decoupled ? 0.0F : step.weight_decay;
    const auto beta1 = static_cast<float>(step.beta1);
    const auto beta2 = static_cast<float>(step.beta2);
    const auto rest1 = static_cast<float>(1.0 - step.beta1);  // not 1.0F − beta2, which is off by 1e-5
    const auto rest2 = static_cast<float>(1.0 - step.beta2);
    for (std::size_t i = 0; i < count; ++i) {
        const float old = p[i] * keep;
        const float g = grads[i] + decay * old;
        const float m = beta1 * first[i] + rest1 * g;
        const float v = beta2 * second[i] + rest2 * g * g;
        first[i] = m;
        second[i] = v;
        p[i] = old - rate * m / (std::sqrt(v) / root_correction + step.epsilon);
    }
}

FINCH_VECTORISED void adadelta(const AdadeltaStep& step, float* __restrict p, const float* __restrict grads,
                               float* __restrict squares, float* __restrict updates, std::size_t count) {
    const float rest = 1.0F - step.rho;
    for (std::size_t i = 0; i < count; ++i) {
        const float g = grads[i] + step.weight_decay * p[i];
        const float square = step.rho * squares[i] + rest * g * g;
        const float update = std::sqrt(updates[i] + step.epsilon) / std::sqrt(square + step.epsilon) * g;
        squares[i] = square;
        updates[i] = step.rho * updates[i] + rest * update * update;
        p[i] -= step.learning_rate * update;
    }
}

}  // namespace

void optimizer_step(const OptimizerStep& step, float* parameters, const float* grads, float* state_a, float* state_b,
                    std::size_t count) {
    if (const auto* to_do = std::get_if<SgdStep>(&step)) {
        if (to_do->momentum == 0.0F) {
            plain_sgd(*to_do, parameters, grads, count);
        } else {
            sgd(*to_do, parameters, grads, state_a, count);
        }
    } else if (const auto* adam_step = std::get_if<AdamStep>(&step)) {
        const auto number = static_cast<double>(adam_step->step);
        const double first = 1.0 - std::pow(adam_step->beta1, number);
        const double second = 1.0 - std::pow(adam_step->beta2, number);
        adam(*adam_step, static_cast<float>(adam_step->learning_rate / first), static_cast<float>(std::sqrt(second)),
             parameters, grads, state_a, state_b, count);
    } else {
        adadelta(std::get<AdadeltaStep>(step), parameters, grads, state_a, state_b, count);
    }
}

}  // namespace finch::backend::cpu
