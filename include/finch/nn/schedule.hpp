#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

namespace finch::nn {

/// torch.optim.lr_scheduler's StepLR, ExponentialLR, CosineAnnealingLR and OneCycleLR (its cosines).
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
/// Up to the rate and down again, each along half a cosine.
struct OneCycleSchedule {
    double rise = 0.3;      ///< share of the training in which it rises
    double start = 0.04;    ///< the first rate, as a share of the highest
    double minimum = 4e-6;  ///< the last
};
using Schedule = std::variant<ConstantSchedule, StepSchedule, ExponentialSchedule, CosineSchedule, OneCycleSchedule>;

/// When the rate changes; a one-cycle schedule's with every step.
enum class Pace { epoch, step };
constexpr std::array<std::string_view, 2> words_of(Pace) {
    return {"epoch", "step"};
}

/// Position of a training: in `unit` (0 is the first) of `units`; an epoch has `units_per_epoch`. Units are epochs or
/// steps.
struct ScheduleTime {
    std::int64_t unit = 0;
    std::int64_t units = 1;
    std::int64_t units_per_epoch = 1;
};

/// The rate there. `initial` is the first rate, of a one-cycle schedule the highest.
[[nodiscard]] double learning_rate(const Schedule& schedule, double initial, const ScheduleTime& time);

}  // namespace finch::nn
