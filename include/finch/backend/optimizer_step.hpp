#pragma once

#include <cstdint>
#include <variant>

namespace finch::backend {

/// torch.optim.SGD: g += weight_decay·p; buffer = momentum·buffer + g (the first step: g); p −= rate·buffer.
struct SgdStep {
    float learning_rate = 0.01F;
    float momentum = 0;
    float weight_decay = 0;
    bool nesterov = false;
    bool first = false;  ///< the first step of a training
};

/// torch.optim.Adam, or AdamW where `decoupled` (p −= rate·weight_decay·p first). state_a: first moment, state_b:
/// second.
struct AdamStep {
    float learning_rate = 0.001F;
    double beta1 = 0.9;
    double beta2 = 0.999;
    float epsilon = 1e-8F;
    float weight_decay = 0;
    bool decoupled = false;
    std::int64_t step = 1;  ///< 1 is the first; for the bias corrections, which are computed in double
};

/// torch.optim.Adadelta. state_a: average of squared gradients, state_b: of squared updates.
struct AdadeltaStep {
    float learning_rate = 1;
    float rho = 0.9F;
    float epsilon = 1e-6F;
    float weight_decay = 0;
};

using OptimizerStep = std::variant<SgdStep, AdamStep, AdadeltaStep>;

}  // namespace finch::backend
