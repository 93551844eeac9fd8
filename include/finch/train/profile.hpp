#pragma once

#include "finch/backend/lap_timer.hpp"
#include "finch/base/clock.hpp"
#include "finch/comm/group.hpp"
#include "finch/nn/plan.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace finch::train {

/// The time that one rank spent on each activity.
struct RankTimes {
    std::array<double, backend::activities> seconds{};
    double waited_in_steps = 0;  ///< part of Activity::wait: in all-reduces of training steps

    [[nodiscard]] double of(backend::Activity activity) const { return seconds.at(static_cast<std::size_t>(activity)); }
    [[nodiscard]] double whole() const;
    /// Returns the seconds of all training steps, from loading the data to the optimizer, waiting included.
    [[nodiscard]] double steps() const;
    RankTimes& operator+=(const RankTimes& other);
};

/// The times of all ranks of a worker during a period: one epoch, or the whole training.
struct GroupTimes {
    std::int64_t epoch = 0;               ///< counted from 1; 0: the period is not one epoch
    std::int64_t training_samples = 0;    ///< sum over all ranks
    std::int64_t validation_samples = 0;  ///< sum over all ranks
    std::vector<RankTimes> ranks = {};

    /// Returns the mean over the ranks, in seconds.
    [[nodiscard]] double mean(backend::Activity activity) const;
    [[nodiscard]] double mean_whole() const;
    /// Returns the mean share of `activity` in the whole time: 0 to 1.
    [[nodiscard]] double share(backend::Activity activity) const { return mean(activity) / mean_whole(); }
    /// Returns samples per second: the samples of all ranks divided by the seconds of the slowest rank.
    [[nodiscard]] double training_speed() const;
    [[nodiscard]] double validation_speed() const;
    GroupTimes& operator+=(const GroupTimes& other);
};

/// One operation of the model, with the seconds of its forward and backward in training steps (mean over the ranks).
/// An asynchronous device (GPU) does not measure the seconds of layers: they are 0.
struct LayerTimes {
    std::string kind;  ///< "conv"
    std::string name;  ///< prefix of its tensors in PyTorch: "0"; empty if it has no tensors
    double forward = 0;
    double backward = 0;
    std::int64_t bytes = 0;  ///< nn::least_bytes() of this rank's micro-batch
};

/// The time that a worker spent on each activity, from the construction of a Profile to its report().
struct ProfileReport {
    std::vector<GroupTimes> epochs;  ///< all epochs that ended
    GroupTimes all;                  ///< the epochs, and the time before, between and after them
    std::vector<LayerTimes> layers;  ///< in the model's order
};

/// Returns a log line about an epoch: samples per second, and the share of each activity.
[[nodiscard]] std::string epoch_text(const GroupTimes& times);
/// Returns the report as a readable table, one string per line.
[[nodiscard]] std::vector<std::string> table_text(const ProfileReport& report);
/// Returns the report in JSON, including the times of every rank and epoch.
[[nodiscard]] std::string json_text(const ProfileReport& report);

/// A profiler: it measures how much time this rank spends on each activity of a training, and collects the times of the
/// worker's other ranks. A Profile is also a LapTimer that uses the host's clock. While an asynchronous device with its
/// own timer executes steps, only the laps of the device's timer count, and laps of the host do not count. Time in
/// which the device is idle counts as `other`.
///
/// The rank that enters an all-reduce last does not wait for others, so its lap has the duration of the sum itself.
/// Every rank therefore counts the shortest all-reduce lap of all ranks as all_reduce, and the excess of its own lap as
/// `wait`.
class Profile : public backend::LapTimer {
public:
    explicit Profile(std::function<double()> now = steady_seconds);

    /// Sets the model that is trained after this call.
    void set_model(const nn::ModelPlan& plan);
    /// hand_over() marks the start of asynchronous steps on the device: laps of the host no longer count. take_back()
    /// marks the end of these steps and adds `times`, the laps that the device measured.
    void hand_over();
    void take_back(const backend::LapTimes& times);

    /// Counts the samples of all ranks in steps that were enqueued on the device.
    void count_training(std::int64_t samples) noexcept { training_samples_ += samples; }
    void count_validation(std::int64_t samples) noexcept { validation_samples_ += samples; }

    /// Collective over the worker. Assigns the time since the end of the previous epoch, or since construction, to
    /// `epoch` (counted from 1). Returns the times of this epoch.
    const GroupTimes& end_epoch(const comm::Group& group, std::int64_t epoch);
    /// Collective over the worker. Returns all times that were measured so far.
    [[nodiscard]] ProfileReport report(const comm::Group& group);

private:
    void begin(backend::Lap lap) noexcept override;
    /// Adds the time of the present lap, then starts a new lap of the same activity.
    void end_lap() noexcept;
    double seconds_since_last() noexcept;
    [[nodiscard]] GroupTimes gather(const comm::Group& group);

    std::function<double()> now_;
    double last_;
    bool is_handed_over_ = false;
    backend::LapTimes times_;  ///< since the end of the last epoch, as the next two members
    std::int64_t training_samples_ = 0;
    std::int64_t validation_samples_ = 0;
    std::vector<LayerTimes> layers_;  ///< per node of the model, for this rank only
    std::vector<GroupTimes> epochs_;
    GroupTimes all_;
};

}  // namespace finch::train
