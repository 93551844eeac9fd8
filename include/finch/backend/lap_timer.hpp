#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace finch::backend {

/// The activities into which the time of a training is divided. `other` is any activity that has no name here.
enum class Activity : std::uint32_t {
    data,
    forward,
    backward,
    all_reduce,
    wait,
    optimizer,
    validation,
    snapshot,
    other
};
inline constexpr std::size_t activities = 9;
constexpr std::array<std::string_view, activities> words_of(Activity) {
    return {"data", "forward", "backward", "all-reduce", "wait", "optimizer", "validation", "snapshot", "other"};
}

/// An interval of time: its activity and, for forward and backward, the node of the model that ran (−1: none).
struct Lap {
    Activity activity = Activity::other;
    std::int32_t node = -1;
};

/// The total seconds of completed laps.
struct LapTimes {
    std::array<double, activities> seconds{};
    std::vector<double> all_reduces{};  ///< of each lap in Activity::all_reduce, in order, up to a limit

    [[nodiscard]] double& of(Activity activity) { return seconds[static_cast<std::size_t>(activity)]; }
    [[nodiscard]] double of(Activity activity) const { return seconds[static_cast<std::size_t>(activity)]; }
};

/// Divides time into laps. Exactly one lap is active at any time, so the seconds of all laps add up to the elapsed
/// time.
class LapTimer {
public:
    virtual ~LapTimer() = default;

    /// Ends the current lap and begins `lap`. The timer of a device changes the lap when the device's stream reaches
    /// the point of this call.
    void enter(Lap lap) noexcept {
        begin(lap);
        present_ = lap;
    }
    [[nodiscard]] Lap present() const noexcept { return present_; }

private:
    /// Begins `lap`. While begin() runs, present() still returns the previous lap.
    virtual void begin(Lap lap) noexcept = 0;

    Lap present_;
};

/// A LapTimer in the stream of an asynchronous device. The device's clock measures the laps. A DeviceLapTimer does not
/// record the model's nodes, because reading the clock takes a considerable part of a layer's time.
class DeviceLapTimer : public LapTimer {
public:
    /// Returns the times since construction or since the last take(). The time of Activity::other is omitted, because
    /// the stream has no work during this activity. Valid only after Device::synchronize().
    [[nodiscard]] virtual LapTimes take() = 0;
};

/// Enters a lap for the lifetime of this object. The destructor enters the previous lap again. Does nothing if `timer`
/// is null.
class LapScope {
public:
    LapScope(LapTimer* timer, Activity activity) : timer_(timer) {
        if (timer_ != nullptr) {
            before_ = timer_->present();
            timer_->enter({activity});
        }
    }
    ~LapScope() {
        if (timer_ != nullptr) {
            timer_->enter(before_);
        }
    }
    LapScope(const LapScope&) = delete;
    LapScope& operator=(const LapScope&) = delete;

private:
    LapTimer* timer_;
    Lap before_;
};

}  // namespace finch::backend
