#pragma once

#include "finch/backend/device.hpp"
#include "finch/base/named_array.hpp"

#include <cstdint>
#include <string>
#include <variant>

namespace finch::nn {

/// torch.optim's definitions and defaults; the learning rate comes from the schedule.
struct SgdOptions {
    double momentum = 0;
    double weight_decay = 0;
    bool nesterov = false;
};
struct AdamOptions {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0;
};
struct AdamWOptions {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0.01;
};
struct AdadeltaOptions {
    double rho = 0.9;
    double epsilon = 1e-6;
    double weight_decay = 0;
};
using OptimizerOptions = std::variant<SgdOptions, AdamOptions, AdamWOptions, AdadeltaOptions>;

/// The optimizer's state over the flat arena.
class Optimizer {
public:
    Optimizer(backend::Device& device, const OptimizerOptions& options, std::int64_t parameters);

    /// Counts a step, and gives its numbers for Feed::fill().
    [[nodiscard]] backend::OptimizerStep next(double learning_rate);
    /// Asks the device for the update by the numbers of the feed's step whose loss was last.
    void apply(backend::Feed& feed, std::span<float> parameters, std::span<const float> grads);

    /// "optimizer/step", "optimizer/state_a" …; and back.
    [[nodiscard]] NamedArrays state() const;
    void set_state(const NamedArrays& state);

private:
    backend::Device& device_;
    OptimizerOptions options_;
    std::int64_t steps_ = 0;
    backend::Buffer state_a_;
    backend::Buffer state_b_;  ///< empty where the optimizer has none
};

}  // namespace finch::nn
