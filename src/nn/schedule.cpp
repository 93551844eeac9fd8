#include "finch/nn/schedule.hpp"

#include <cmath>
#include <numbers>

namespace finch::nn {
namespace {

/// Interpolates from `a` (share 0) to `b` (share 1) along half a cosine.
double along_cosine(double a, double b, double share) {
    return b + (a - b) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

/// Returns the learning rate as a share of the initial rate.
double share(const ConstantSchedule& /*schedule*/, const ScheduleTime& /*time*/) {
    return 1;
}
double share(const StepSchedule& schedule, const ScheduleTime& time) {
    return std::pow(schedule.factor, static_cast<double>(time.unit / time.units_per_epoch / schedule.every));
}
double share(const ExponentialSchedule& schedule, const ScheduleTime& time) {
    return std::pow(schedule.factor, static_cast<double>(time.unit) / static_cast<double>(time.units_per_epoch));
}
double share(const CosineSchedule& schedule, const ScheduleTime& time) {
    return along_cosine(1, schedule.minimum, static_cast<double>(time.unit) / static_cast<double>(time.units));
}
double share(const OneCycleSchedule& schedule, const ScheduleTime& time) {
    const auto unit = static_cast<double>(time.unit);
    const double top = schedule.rise * static_cast<double>(time.units) - 1;
    if (unit <= top) {
        return along_cosine(schedule.start, 1, top > 0 ? unit / top : 1);
    }
    const double last = static_cast<double>(time.units) - 1;
    return along_cosine(1, schedule.minimum, (unit - top) / (last - top));
}

}  // namespace

double learning_rate(const Schedule& schedule, double initial, const ScheduleTime& time) {
    return initial * std::visit([&](const auto& known) { return share(known, time); }, schedule);
}

}  // namespace finch::nn
