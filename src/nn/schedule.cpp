#include "finch/nn/schedule.hpp"

#include <cmath>
#include <numbers>

namespace finch::nn {
namespace {

/// The share of the initial rate in `epoch` of `epochs`.
double share(const ConstantSchedule& /*schedule*/, std::int64_t /*epoch*/, std::int64_t /*epochs*/) {
    return 1;
}
double share(const StepSchedule& schedule, std::int64_t epoch, std::int64_t /*epochs*/) {
    return std::pow(schedule.factor, static_cast<double>(epoch / schedule.every));
}
double share(const ExponentialSchedule& schedule, std::int64_t epoch, std::int64_t /*epochs*/) {
    return std::pow(schedule.factor, static_cast<double>(epoch));
}
double share(const CosineSchedule& schedule, std::int64_t epoch, std::int64_t epochs) {
    const double angle = std::numbers::pi * static_cast<double>(epoch) / static_cast<double>(epochs);
    return schedule.minimum + (1 - schedule.minimum) * (1 + std::cos(angle)) / 2;
}

}  // namespace

double learning_rate(const Schedule& schedule, double initial, std::int64_t epoch, std::int64_t epochs) {
    return initial * std::visit([&](const auto& known) { return share(known, epoch, epochs); }, schedule);
}

}  // namespace finch::nn
