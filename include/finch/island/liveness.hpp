#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace finch::island {

/// Timeout of an announced operation of unknown duration.
inline constexpr double long_seconds = 600;

/// Seconds allowed for an operation on files that took `last_seconds` the last time (0: never): 20 times that, at least
/// three minutes, in which a failed file server recovers.
[[nodiscard]] double allowed_seconds(double last_seconds);

/// Finds leaders that were silent for too long. World rank 0 watches all leaders, the others watch world rank 0. Every
/// message is a sign of life; an idle leader sends one every `interval` seconds. Pure logic over a given clock (steady
/// seconds).
class Liveness {
public:
    /// A leader is silent after `seconds` without a sign, but never before three intervals; 0: no leader is watched.
    Liveness(std::int32_t self, int workers, double seconds, double now);

    /// Seconds between two signs: 10, and so many more that world rank 0 receives at most 100 a second.
    [[nodiscard]] double interval() const noexcept { return interval_; }
    /// Seconds after which a leader counts as silent.
    [[nodiscard]] double limit() const noexcept { return limit_; }

    /// `from` lives. `seconds`, if not 0: it announced that its next sign may take so long.
    void heard(std::int32_t from, double now, double seconds = 0);
    /// Whether a sign is due. True once per interval: the caller then sends one.
    [[nodiscard]] bool sign_is_due(double now);
    /// When the next sign is due; infinity if no leader is watched.
    [[nodiscard]] double next_sign() const noexcept;
    /// An announced operation is over: a sign is due now.
    void hurry() noexcept { last_sign_ = -1e300; }
    /// The watched leader that has been silent for longest beyond its limit, if there is one. To be asked often: if
    /// this process did not ask for more than a second, it was suspended or busy itself, and blames no leader for that
    /// time. O(1) while no leader can be silent.
    [[nodiscard]] std::optional<std::int32_t> silent(double now);

private:
    std::int32_t self_;
    double interval_;
    double limit_;
    bool watches_;
    double last_sign_;
    double last_look_;
    std::vector<double> due_;  ///< by worker, of those that are watched: when its next sign comes at the latest
    double earliest_;          ///< none of due_ is before it
};

}  // namespace finch::island
