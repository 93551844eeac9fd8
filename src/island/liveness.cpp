#include "finch/island/liveness.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace finch::island {
namespace {

constexpr double least_interval = 10;        // s
constexpr double signs_per_second = 100;     // at world rank 0
constexpr double longest_between_looks = 1;  // s

constexpr double least_allowed = 180;  // s
constexpr double most_times = 20;      // times the last duration, but not over long_seconds
constexpr double least_times = 3;      // times the last duration, if that is over long_seconds

}  // namespace

double allowed_seconds(double last_seconds) {
    const double most = std::max(long_seconds, least_times * last_seconds);
    return last_seconds > 0 ? std::clamp(most_times * last_seconds, least_allowed, most) : long_seconds;
}

Liveness::Liveness(std::int32_t self, int workers, double seconds, double now)
    : self_(self),
      interval_(std::max(least_interval, workers / signs_per_second)),
      limit_(std::max(seconds, 3 * interval_)),
      watches_(seconds > 0),
      last_sign_(now),
      last_look_(now),
      due_(self == 0 ? static_cast<std::size_t>(workers) : 1, now + limit_),
      earliest_(now + limit_) {}

void Liveness::heard(std::int32_t from, double now, double seconds) {
    if (self_ == 0 || from == 0) {
        const double due = now + std::max(seconds, limit_);
        due_.at(static_cast<std::size_t>(from)) = due;
        earliest_ = std::min(earliest_, due);
    }
}

double Liveness::next_sign() const noexcept {
    return watches_ ? last_sign_ + interval_ : std::numeric_limits<double>::infinity();
}

bool Liveness::sign_is_due(double now) {
    if (now < next_sign()) {
        return false;
    }
    last_sign_ = now;
    return true;
}

std::optional<std::int32_t> Liveness::silent(double now) {
    if (const double gap = now - std::exchange(last_look_, now); gap > longest_between_looks) {
        for (double& due : due_) {
            due += gap;
        }
        earliest_ += gap;
    }
    if (!watches_ || now < earliest_) {
        return std::nullopt;
    }
    const auto latest = std::min_element(due_.begin() + (self_ == 0 ? 1 : 0), due_.end());
    earliest_ = latest != due_.end() ? *latest : now + limit_;
    if (now < earliest_) {
        return std::nullopt;
    }
    return static_cast<std::int32_t>(latest - due_.begin());
}

}  // namespace finch::island
