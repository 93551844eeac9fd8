#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

namespace finch::nn {

/// Learning rate schedules: constant, and StepLR, ExponentialLR, CosineAnnealingLR and OneCycleLR (with cosine
/// annealing) of torch.optim.lr_scheduler.
struct ConstantSchedule {};
struct StepSchedule {
    std::int64_t every = 1;  ///< epochs between two changes
    double factor = 0.1;
};
struct ExponentialSchedule {
    double factor = 0.95;  ///< per epoch
};
struct CosineSchedule {
    double minimum = 0;  ///< rate at the end of the last epoch, as a share of the initial rate
};
/// A one-cycle schedule: the rate rises to its maximum and then falls, each along half a cosine.
struct OneCycleSchedule {
    double rise = 0.3;      ///< share of the training in which the rate rises
    double start = 0.04;    ///< first rate, as a share of the highest rate
    double minimum = 4e-6;  ///< last rate, as a share of the highest rate
};
using Schedule = std::variant<ConstantSchedule, StepSchedule, ExponentialSchedule, CosineSchedule, OneCycleSchedule>;

/// The interval at which the learning rate changes. A one-cycle schedule always changes the rate with every step.
enum class Pace { epoch, step };
constexpr std::array<std::string_view, 2> words_of(Pace) {
    return {"epoch", "step"};
}

/// The position in a training, in units of epochs or steps. `unit` counts from 0; the training has `units` units, and
/// an epoch has `units_per_epoch`.
struct ScheduleTime {
    std::int64_t unit = 0;
    std::int64_t units = 1;
    std::int64_t units_per_epoch = 1;
};

/// Returns the learning rate at `time`. `initial` is the first rate, or the highest rate of a one-cycle schedule.
[[nodiscard]] double learning_rate(const Schedule& schedule, double initial, const ScheduleTime& time);

}  // namespace finch::nn
