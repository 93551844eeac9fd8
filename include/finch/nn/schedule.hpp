#pragma once

#include <cstdint>
#include <variant>

namespace finch::nn {

/// torch.optim.lr_scheduler's StepLR, ExponentialLR and CosineAnnealingLR, stepped once per epoch.
struct ConstantSchedule {};
struct StepSchedule {
    std::int64_t every = 1;  ///< epochs
    double factor = 0.1;
};
struct ExponentialSchedule {
    double factor = 0.95;  ///< per epoch
};
struct CosineSchedule {
    double minimum = 0;  ///< the rate at the last epoch's end, as a share of the initial one
};
using Schedule = std::variant<ConstantSchedule, StepSchedule, ExponentialSchedule, CosineSchedule>;

/// The rate in `epoch` (0 is the first) of `epochs`.
[[nodiscard]] double learning_rate(const Schedule& schedule, double initial, std::int64_t epoch, std::int64_t epochs);

}  // namespace finch::nn
