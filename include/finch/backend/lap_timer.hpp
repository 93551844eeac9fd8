#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace finch::backend {

/// Activities that a training's time is divided among. `other`: none of the named ones.
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

/// A stretch of time: what is done in it, and, in forward and backward, by which of the model's nodes; −1: none.
struct Lap {
    Activity activity = Activity::other;
    std::int32_t node = -1;
};

/// Seconds of laps that have ended.
struct LapTimes {
    std::array<double, activities> seconds{};
    std::vector<double> all_reduces{};  ///< of each lap in Activity::all_reduce, in order; not of those beyond a limit

    [[nodiscard]] double& of(Activity activity) { return seconds[static_cast<std::size_t>(activity)]; }
    [[nodiscard]] double of(Activity activity) const { return seconds[static_cast<std::size_t>(activity)]; }
};

/// Cuts time into laps. It is always in exactly one, so their seconds add up to the time that passed.
class LapTimer {
public:
    virtual ~LapTimer() = default;

    /// The present lap ends and this one begins: for a device's timer, when the device comes to it.
    void enter(Lap lap) noexcept {
        begin(lap);
        present_ = lap;
    }
    [[nodiscard]] Lap present() const noexcept { return present_; }

private:
    /// present() is still that before.
    virtual void begin(Lap lap) noexcept = 0;

    Lap present_;
};

/// A LapTimer in line on a device that runs ahead, which reads its own clock. It knows no nodes: what it takes to look
/// at the clock is no small part of what a layer takes.
class DeviceLapTimer : public LapTimer {
public:
    /// Times since construction or the last take(), without `other`, during which the device has no work for it. Only
    /// after Device::synchronize().
    [[nodiscard]] virtual LapTimes take() = 0;
};

/// A lap that lasts as long as this object; then the previous one continues. No effect if `timer` is null.
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
