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

/// Time of one rank by activity.
struct RankTimes {
    std::array<double, backend::activities> seconds{};
    double waited_in_steps = 0;  ///< of Activity::wait: for other ranks' gradients and statistics

    [[nodiscard]] double of(backend::Activity activity) const { return seconds.at(static_cast<std::size_t>(activity)); }
    [[nodiscard]] double whole() const;
    /// Seconds of training steps, from their data to their optimizer.
    [[nodiscard]] double steps() const;
    RankTimes& operator+=(const RankTimes& other);
};

/// A stretch of a training, on all ranks of a worker.
struct GroupTimes {
    std::int64_t epoch = 0;               ///< 0: none, or all of them
    std::int64_t training_samples = 0;    ///< of all ranks
    std::int64_t validation_samples = 0;  ///< of all ranks
    std::vector<RankTimes> ranks = {};

    /// Over the ranks.
    [[nodiscard]] double mean(backend::Activity activity) const;
    [[nodiscard]] double mean_whole() const;
    /// 0 to 1.
    [[nodiscard]] double share(backend::Activity activity) const { return mean(activity) / mean_whole(); }
    /// Samples per second of all ranks, by the seconds of the slowest.
    [[nodiscard]] double training_speed() const;
    [[nodiscard]] double validation_speed() const;
    GroupTimes& operator+=(const GroupTimes& other);
};

/// One operation of the model, and the mean over the ranks of what its forward and backward in training steps took.
struct LayerTimes {
    std::string kind;  ///< "conv"
    std::string name;  ///< its tensors' prefix, PyTorch's: "0"; empty if it has none
    double forward = 0;
    double backward = 0;
};

/// Time of a worker by activity, from a Profile's beginning to its end.
struct ProfileReport {
    std::vector<GroupTimes> epochs;  ///< that ended
    GroupTimes all;                  ///< and what was before, between and after them
    std::vector<LayerTimes> layers;  ///< in the model's order; none on a device that runs ahead
};

/// One line about an epoch: samples per second and shares.
[[nodiscard]] std::string epoch_text(const GroupTimes& times);
/// A table for people, a string per line.
[[nodiscard]] std::vector<std::string> table_text(const ProfileReport& report);
/// The same, and every rank and epoch of it, in JSON.
[[nodiscard]] std::string json_text(const ProfileReport& report);

/// Measures where the time of this rank's training goes, and of the worker's other ranks with it. As a LapTimer it is
/// the host's. While a device works ahead with a timer of its own, that one's laps count, and nothing that the host
/// does meanwhile; what the device leaves idle is `other`.
///
/// A lap in all_reduce is as long on the rank that comes last as the sum itself takes; on the others the rest of it is
/// a wait. So the least of all ranks stays all_reduce, and what a rank took beyond it becomes `wait`.
class Profile : public backend::LapTimer {
public:
    explicit Profile(std::function<double()> now = steady_seconds);

    /// Sets the model that is trained from now on.
    void set_model(const nn::ModelPlan& plan);
    /// From now on the device works ahead; and it has done so, in `times`.
    void hand_over();
    void take_back(const backend::LapTimes& times);

    /// Samples of all ranks that the device was asked for.
    void count_training(std::int64_t samples) noexcept { training_samples_ += samples; }
    void count_validation(std::int64_t samples) noexcept { validation_samples_ += samples; }

    /// Collective over the worker. What was since the last epoch's end, or the beginning, was this epoch (1 is the
    /// first).
    const GroupTimes& end_epoch(const comm::Group& group, std::int64_t epoch);
    /// Collective over the worker. What was measured so far.
    [[nodiscard]] ProfileReport report(const comm::Group& group);

private:
    void begin(backend::Lap lap) noexcept override;
    /// Ends the present lap, which restarts at 0 seconds.
    void end_lap() noexcept;
    double seconds_since_last() noexcept;
    [[nodiscard]] GroupTimes gather(const comm::Group& group);

    std::function<double()> now_;
    double last_;
    bool is_handed_over_ = false;
    backend::LapTimes times_;  ///< since the last epoch's end, as the next two are
    std::int64_t training_samples_ = 0;
    std::int64_t validation_samples_ = 0;
    std::vector<LayerTimes> layers_;  ///< by node, of this rank
    std::vector<GroupTimes> epochs_;
    GroupTimes all_;
};

}  // namespace finch::train
