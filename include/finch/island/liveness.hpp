#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace finch::island {

/// The timeout in seconds for an operation that a leader has announced without knowing its duration.
inline constexpr double long_seconds = 600;

/// Returns the seconds allowed for a file operation that took `last_seconds` the last time. The limit is 20 times
/// `last_seconds`, but at least 180 s, which a failed file server needs to recover. The maximum is 600 s, or three
/// times `last_seconds` if that is longer. Returns 600 if `last_seconds` is 0 (the first time).
[[nodiscard]] double allowed_seconds(double last_seconds);

/// A detector of leaders that are silent for too long. World rank 0 watches all leaders; the other leaders watch world
/// rank 0. Every message is a sign of life. An idle leader sends a sign of life every interval() seconds. Pure logic:
/// the caller passes the time in steady seconds.
class Liveness {
public:
    /// A leader counts as silent after `seconds` without a sign of life, but not before three intervals. 0: no leader
    /// is watched.
    Liveness(std::int32_t self, int workers, double seconds, double now);

    /// Returns the seconds between two signs of life: 10, or more so that world rank 0 receives at most 100 per second.
    [[nodiscard]] double interval() const noexcept { return interval_; }
    /// Returns the seconds after which a leader counts as silent.
    [[nodiscard]] double limit() const noexcept { return limit_; }

    /// Records a sign of life of `from`. `seconds`, if not 0: `from` announced that its next sign of life may take this
    /// long.
    void heard(std::int32_t from, double now, double seconds = 0);
    /// True once per interval, if a sign of life is due. The caller then sends a sign of life.
    [[nodiscard]] bool sign_is_due(double now);
    /// Returns when the next sign of life is due; infinity if no leader is watched.
    [[nodiscard]] double next_sign() const noexcept;
    /// Makes a sign of life due now. Called when an announced operation begins, so that the sign is sent right after
    /// the operation.
    void hurry() noexcept { last_sign_ = -1e300; }
    /// Returns the watched leader that has been silent for the longest time beyond its limit, if any. Call silent()
    /// often: a gap of more than a second between two calls counts against no leader, because this process was
    /// suspended or busy itself. O(1) while no leader can be silent.
    [[nodiscard]] std::optional<std::int32_t> silent(double now);

private:
    std::int32_t self_;
    double interval_;
    double limit_;
    bool watches_;
    double last_sign_;
    double last_look_;
    std::vector<double> due_;  ///< by watched worker: the latest time of its next sign of life
    double earliest_;          ///< no entry of due_ is earlier
};

}  // namespace finch::island
