#pragma once

#include "finch/base/portable.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <variant>

/// Optimizers. Each struct has the options and the update rule of one optimizer. All backends share the update rules.
/// Formulas, names and defaults are the same as in torch.optim. The learning rate comes from the schedule. If the user
/// sets no learning rate, the schedule begins at `usual_rate`.
namespace finch::backend {

/// The scalars of one optimizer step, in the form that an update rule uses. Once per step the host computes the
/// scalars, including the powers and the double arithmetic.
struct OptimizerScalars {
    float rate = 0;  ///< the learning rate; for Adam divided by the first moment's bias correction
    float weight_decay = 0;
    float keep = 1;  ///< decoupled weight decay: parameters are first multiplied by this factor
    float momentum = 0;
    bool nesterov = false;
    bool first = false;  ///< the first step of a training
    float beta1 = 0;
    float rest1 = 0;  ///< 1 − beta1
    float beta2 = 0;
    float rest2 = 0;
    float root_correction = 1;  ///< square root of the second moment's bias correction
    float epsilon = 0;
    std::int64_t corrected_step = 0;  ///< the step for which Adam's moments are bias-corrected; 0: no correction
};

/// Returns a copy of `numbers` in which weight decay is turned off.
[[nodiscard]] FINCH_PORTABLE OptimizerScalars without_decay(OptimizerScalars numbers) {
    numbers.weight_decay = 0;
    numbers.keep = 1;
    return numbers;
}

/// Returns beta to the power of `exponent` (at least 1), with the same bits on every backend.
[[nodiscard]] FINCH_PORTABLE double power(double beta, std::int64_t exponent) {
    double result = 1;
    for (; exponent > 0; exponent /= 2, beta *= beta) {
        result *= exponent % 2 == 1 ? beta : 1;
    }
    return result;
}

/// Returns the scalars of a step before which `skipped` steps were skipped. In the result, the bias correction of Adam
/// is based only on the executed updates, as in torch.optim. If `skipped` is 0, the result is bitwise identical to
/// `numbers`.
[[nodiscard]] FINCH_PORTABLE OptimizerScalars without_skipped(OptimizerScalars numbers, std::int64_t skipped) {
    if (numbers.corrected_step == 0 || skipped == 0) {
        return numbers;
    }
    const std::int64_t taken = numbers.corrected_step - skipped;
    const double beta1 = 1 - static_cast<double>(numbers.rest1);
    const double beta2 = 1 - static_cast<double>(numbers.rest2);
    const double first = (1 - power(beta1, numbers.corrected_step)) / (1 - power(beta1, taken));
    const double second = (1 - power(beta2, taken)) / (1 - power(beta2, numbers.corrected_step));
    numbers.rate = static_cast<float>(static_cast<double>(numbers.rate) * first);
    numbers.root_correction = static_cast<float>(static_cast<double>(numbers.root_correction) * std::sqrt(second));
    numbers.corrected_step = taken;
    return numbers;
}

/// SGD with gradient g, momentum a and parameter p: g += weight_decay·p; a = momentum·a + g (in the first step a = g);
/// p −= rate·a. With Nesterov momentum the last assignment is p −= rate·(g + momentum·a).
struct Sgd {
    static constexpr double usual_rate = 0.01;
    double momentum = 0;
    double weight_decay = 0;
    bool nesterov = false;

    /// Returns the number of state arrays that the optimizer keeps. Each state array is as long as the parameters.
    [[nodiscard]] int states() const { return momentum == 0 ? 0 : 1; }
    /// Returns the scalars of step number `step`. The first step has number 1.
    [[nodiscard]] OptimizerScalars scalars(double rate, std::int64_t step) const {
        return {.rate = static_cast<float>(rate),
                .weight_decay = static_cast<float>(weight_decay),
                .momentum = static_cast<float>(momentum),
                .nesterov = nesterov,
                .first = step == 1};
    }
    /// Updates one parameter `p` and its states `a` and `b` from the gradient `grad` of the parameter.
    FINCH_PORTABLE static void update(const OptimizerScalars& n, float grad, float& p, float& a, float& /*b*/) {
        const float g = grad + n.weight_decay * p;
        a = n.first ? g : n.momentum * a + g;
        p -= n.rate * (n.nesterov ? g + n.momentum * a : a);
    }
};

/// The state `a` is the first moment, the state `b` is the second moment.
struct Adam {
    static constexpr double usual_rate = 0.001;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0;

    [[nodiscard]] static int states() { return 2; }
    [[nodiscard]] OptimizerScalars scalars(double rate, std::int64_t step) const {
        const auto number = static_cast<double>(step);
        const auto single = static_cast<float>(rate);
        return {.rate = static_cast<float>(single / (1.0 - std::pow(beta1, number))),
                .weight_decay = static_cast<float>(weight_decay),
                .beta1 = static_cast<float>(beta1),
                .rest1 = static_cast<float>(1.0 - beta1),  // not 1.0F − beta1, which is off by 1e-5
                .beta2 = static_cast<float>(beta2),
                .rest2 = static_cast<float>(1.0 - beta2),
                .root_correction = static_cast<float>(std::sqrt(1.0 - std::pow(beta2, number))),
                .epsilon = static_cast<float>(epsilon),
                .corrected_step = step};
    }
    FINCH_PORTABLE static void update(const OptimizerScalars& n, float grad, float& p, float& a, float& b) {
        const float old = p * n.keep;
        const float g = grad + n.weight_decay * old;
        a = n.beta1 * a + n.rest1 * g;
        b = n.beta2 * b + n.rest2 * g * g;
        p = old - n.rate * a / (std::sqrt(b) / n.root_correction + n.epsilon);
    }
};

/// Adam with decoupled weight decay: p −= rate·weight_decay·p before the update.
struct AdamW {
    static constexpr double usual_rate = 0.001;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0.01;

    [[nodiscard]] static int states() { return 2; }
    [[nodiscard]] OptimizerScalars scalars(double rate, std::int64_t step) const {
        OptimizerScalars numbers = Adam{beta1, beta2, epsilon, 0}.scalars(rate, step);
        numbers.keep = 1.0F - static_cast<float>(rate) * static_cast<float>(weight_decay);
        return numbers;
    }
    FINCH_PORTABLE static void update(const OptimizerScalars& n, float grad, float& p, float& a, float& b) {
        Adam::update(n, grad, p, a, b);
    }
};

/// The state `a` is the average of squared gradients, the state `b` is the average of squared updates.
/// OptimizerScalars::beta2 holds rho.
struct Adadelta {
    static constexpr double usual_rate = 1;
    double rho = 0.9;
    double epsilon = 1e-6;
    double weight_decay = 0;

    [[nodiscard]] static int states() { return 2; }
    [[nodiscard]] OptimizerScalars scalars(double rate, std::int64_t /*step*/) const {
        const auto single = static_cast<float>(rho);
        return {.rate = static_cast<float>(rate),
                .weight_decay = static_cast<float>(weight_decay),
                .beta2 = single,
                .rest2 = 1.0F - single,
                .epsilon = static_cast<float>(epsilon)};
    }
    FINCH_PORTABLE static void update(const OptimizerScalars& n, float grad, float& p, float& a, float& b) {
        const float g = grad + n.weight_decay * p;
        a = n.beta2 * a + n.rest2 * g * g;
        const float step = std::sqrt(b + n.epsilon) / std::sqrt(a + n.epsilon) * g;
        b = n.beta2 * b + n.rest2 * step * step;
        p -= n.rate * step;
    }
};

using Optimizer = std::variant<Sgd, Adam, AdamW, Adadelta>;

/// Consecutive parameters of an arena. Weight decay applies to all of them or to none.
struct ParameterRange {
    std::size_t begin = 0;
    std::size_t size = 0;
    bool decays = true;
};

/// Returns the average after `value` is added with weight `share` (torch.lerp). With a share of 1 the result is bitwise
/// identical to `value`.
[[nodiscard]] FINCH_PORTABLE float averaged(float average, float value, float share) {
    const float apart = value - average;
    return share < 0.5F ? average + share * apart : value - apart * (1.0F - share);
}

}  // namespace finch::backend
