// Reference implementations of the loss and the optimizers, see reference.hpp.
#include "support/reference_parts.hpp"

#include <algorithm>
#include <cmath>

namespace finch::reference {

using namespace backend;

namespace {

/// Returns exp(logit) / Σ exp(logits) for one row.
Tensor softmax(const double* logits, std::size_t classes) {
    const double top = *std::max_element(logits, logits + classes);
    Tensor result(classes);
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
        sum += result[c] = std::exp(logits[c] - top);
    }
    for (double& value : result) {
        value /= sum;
    }
    return result;
}

double target(std::size_t c, std::int32_t label, std::int64_t classes, double smoothing) {
    return (c == at(label) ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
}

}  // namespace

double cross_entropy(const Tensor& logits, std::span<const std::int32_t> labels, std::span<const float> weights,
                     std::int64_t classes, double smoothing) {
    double loss = 0;
    for (std::size_t n = 0; n < labels.size(); ++n) {
        const Tensor p = softmax(logits.data() + n * at(classes), at(classes));
        for (std::size_t c = 0; c < p.size(); ++c) {
            loss -= static_cast<double>(weights[n]) * target(c, labels[n], classes, smoothing) * std::log(p[c]);
        }
    }
    return loss;
}

Tensor cross_entropy_gradient(const Tensor& logits, std::span<const std::int32_t> labels,
                              std::span<const float> weights, std::int64_t classes, double smoothing) {
    Tensor grad;
    for (std::size_t n = 0; n < labels.size(); ++n) {
        const Tensor p = softmax(logits.data() + n * at(classes), at(classes));
        for (std::size_t c = 0; c < p.size(); ++c) {
            grad.push_back((p[c] - target(c, labels[n], classes, smoothing)) * static_cast<double>(weights[n]));
        }
    }
    return grad;
}

void OptimizedParameter::update(const Sgd& sgd, double rate, int step, double grad) {
    const double g = grad + sgd.weight_decay * value;
    state_a = step == 1 ? g : sgd.momentum * state_a + g;
    value -= rate * (sgd.nesterov ? g + sgd.momentum * state_a : state_a);
}

void OptimizedParameter::update(const Adam& adam, double rate, int step, double grad) {
    const double g = grad + adam.weight_decay * value;
    state_a = adam.beta1 * state_a + (1 - adam.beta1) * g;
    state_b = adam.beta2 * state_b + (1 - adam.beta2) * g * g;
    const double m = state_a / (1 - std::pow(adam.beta1, step));
    const double v = state_b / (1 - std::pow(adam.beta2, step));
    value -= rate * m / (std::sqrt(v) + adam.epsilon);
}

void OptimizedParameter::update(const AdamW& adam, double rate, int step, double grad) {
    value -= rate * adam.weight_decay * value;
    update(Adam{adam.beta1, adam.beta2, adam.epsilon, 0}, rate, step, grad);
}

void OptimizedParameter::update(const Adadelta& adadelta, double rate, int /*step*/, double grad) {
    const double g = grad + adadelta.weight_decay * value;
    state_a = adadelta.rho * state_a + (1 - adadelta.rho) * g * g;
    const double change = std::sqrt(state_b + adadelta.epsilon) / std::sqrt(state_a + adadelta.epsilon) * g;
    state_b = adadelta.rho * state_b + (1 - adadelta.rho) * change * change;
    value -= rate * change;
}

}  // namespace finch::reference
