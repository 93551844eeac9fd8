#pragma once

#include "finch/backend/device.hpp"
#include "finch/cluster/device_map.hpp"
#include "finch/comm/all_reduce.hpp"
#include "finch/comm/group.hpp"
#include "finch/config/config.hpp"
#include "finch/data/dataset.hpp"
#include "finch/energy/shares.hpp"
#include "finch/evaluate/order.hpp"
#include "finch/train/profile.hpp"
#include "finch/train/training.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace finch::evaluate {

/// The trainings of one worker on this rank, one per slot. Every rank of the worker has a Slots object and obeys the
/// same Orders.
class Slots {
public:
    /// Collective over the worker. All references and pointers must outlive the object. Each slot has its own stream on
    /// `device`. `profile` measures the trainings, one after another; it is null on all ranks if nothing is measured.
    /// `meter`: this rank's energy meter; null: there is none.
    Slots(const config::Config& config, const data::Datasets& datasets, backend::Device& device,
          const comm::Group& group, cluster::AllReduceKind communicator, train::Profile* profile = nullptr,
          energy::Meter* meter = nullptr);
    /// During stack unwinding, calls AllReduce::give_up(): the destructors of trainings wait for the device, and the
    /// device may wait for a peer.
    ~Slots();
    Slots(const Slots&) = delete;
    Slots& operator=(const Slots&) = delete;

    /// True if advance() returns before the device has done the steps.
    [[nodiscard]] bool runs_ahead() const { return streams_.front()->runs_ahead(); }

    /// Local. Enqueues the delayed steps of all slots (backend::CapturedStep::waits()), and then the validation steps
    /// that had to follow them.
    void launch_waiting_steps();

    /// Collective over the worker. Obeys `order` and agrees with the group on the result. For `advance`, returns one
    /// status per entry of order.steps; else returns one status.
    std::vector<Status> obey(const Order& order);

    [[nodiscard]] train::Training& training(std::uint32_t slot) { return *slots_.at(slot); }
    /// Returns why the last start or advance failed, from the lowest rank with a reason.
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
    /// Returns the result of the last `snapshot` Order.
    [[nodiscard]] NamedArrays take_snapshot() { return std::move(snapshot_); }
    /// Returns the joules of the training that was last saved or ended, in this start, on all ranks; NaN: not known.
    [[nodiscard]] double joules() const noexcept { return joules_; }
    /// Leader only. Estimates the joules of the running training, in this start, on all ranks: those of the leader
    /// times the number of ranks. Other ranks are not asked, since they do the same work.
    [[nodiscard]] double joules_so_far(std::uint32_t slot);
    /// Returns the result of the last `report` Order.
    [[nodiscard]] const train::ProfileReport& report() const noexcept { return report_; }
    [[nodiscard]] const data::Dataset& training_set() const noexcept { return datasets_.training; }
    /// Returns null if nothing is measured.
    [[nodiscard]] train::Profile* profile() const noexcept { return profile_; }

private:
    Status start(const Order& order);
    Status advance(const Order::Steps& steps);
    void sum_energy(std::uint32_t slot);
    template <class Work>
    [[nodiscard]] std::pair<Status, std::string> attempt(Work&& work) const;
    void check_health(std::uint32_t slot);
    /// Returns the bytes that the largest snapshot of the trainings may take.
    [[nodiscard]] std::int64_t largest_snapshot() const;
    [[nodiscard]] Status agree(Status mine, const std::string& text);

    const config::Config& config_;
    const data::Datasets& datasets_;
    const comm::Group& group_;
    train::Profile* profile_;  ///< null: not measured
    train::ProfileReport report_;
    int exceptions_;                                         ///< uncaught exceptions at construction
    std::vector<std::unique_ptr<backend::Device>> streams_;  ///< by slot
    std::unique_ptr<comm::AllReduce> all_reduce_;
    std::vector<std::unique_ptr<train::Training>> slots_;
    energy::Shares energy_;
    double joules_ = 0;
    NamedArrays snapshot_;
    std::string problem_;
};

}  // namespace finch::evaluate
