#pragma once

#include "finch/comm/group.hpp"
#include "finch/config/config.hpp"
#include "finch/energy/shares.hpp"
#include "finch/evaluate/order.hpp"
#include "finch/island/evaluator.hpp"
#include "finch/train/profile.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace finch::evaluate {

/// The evaluations of one worker, in slots. Every rank of the worker has a GroupEvaluator: the leader turns each call
/// into Orders, which all ranks obey, and the followers run follow(). The derived class is the job: what differs
/// between networks, programs and functions.
class GroupEvaluator : public island::Evaluator {
public:
    /// All arguments must outlive the evaluator. `meter`: this rank's energy meter; null: there is none. `profile`
    /// measures the trainings, one after another; it is set on all ranks or on none.
    GroupEvaluator(const config::Config& config, const comm::Group& group, energy::Meter* meter = nullptr,
                   std::optional<train::Profile> profile = std::nullopt);
    GroupEvaluator(const GroupEvaluator&) = delete;
    GroupEvaluator& operator=(const GroupEvaluator&) = delete;

    [[nodiscard]] bool has_free_slot() const override;
    [[nodiscard]] bool idle() const override;
    [[nodiscard]] bool can_exist(const search::Genome&) const override { return true; }
    [[nodiscard]] bool wants_soon() const override;
    void start(search::Individual individual, const search::Population& population) override;
    [[nodiscard]] std::vector<search::Individual> advance(const search::Population& population) override;
    [[nodiscard]] std::vector<search::Individual> take_progress() override;
    [[nodiscard]] std::vector<const search::Individual*> in_progress() const override;
    void finished(const search::Individual&, const search::Population&) override {}
    [[nodiscard]] std::vector<search::Individual> checkpoint() override { return {}; }
    [[nodiscard]] double checkpoint_seconds() const override { return 0; }
    void keep_alive(double seconds) override;
    void dismiss() override { command(Order{}); }

    /// Follower only. Obeys the leader's Orders until one of kind `dismiss`.
    void follow();
    /// Collective over the worker. Carries out an Order on this rank.
    Answer obey(const Order& order);
    /// Leader only. Returns the profile of all ranks. Requires a profile.
    [[nodiscard]] const train::ProfileReport& report();

protected:
    /// Seconds that the followers wait for a leader that reads or writes an evaluation's files.
    static constexpr double seconds_of_files = 600;

    /// The content of a slot, on the leader.
    struct Slot {
        bool used = false;
        search::Individual individual{};
        std::int32_t rung = 0;     ///< last reported by take_progress()
        std::int32_t epochs = 0;   ///< last reported by take_progress()
        double joules_before = 0;  ///< in earlier starts
        /// Steady seconds from which take_progress() reports new epochs, even if no budget counts them.
        double tell_at = std::numeric_limits<double>::infinity();
    };

    // The job on every rank, collective over the worker.
    virtual Answer on_start(const Order& order) = 0;
    virtual Answer on_advance(const Order& order) = 0;
    virtual void on_release(const Order&) {}
    virtual void on_snapshot(const Order&) {}
    virtual void on_signal() {}
    virtual void on_end(const Order&) {}
    virtual void on_dismiss() {}
    /// Returns the seconds that the evaluation has taken in this start. Only the leader's value counts.
    [[nodiscard]] virtual double worked(std::uint32_t slot) const = 0;

    // The job on the leader.
    /// Completes `order`, which starts `individual`, and sets what the individual's beginning changes. If it continues
    /// an earlier start, its seconds and joules are those up to there.
    virtual void prepare(search::Individual&, Order&, const search::Population&) {}
    /// Called after the evaluation that `order` started has begun.
    virtual void begun(const Order&) {}
    /// Waits some milliseconds for news of the slots. False if there can be none.
    virtual bool wait() { return true; }
    /// Advances an evaluation. Returns the individual once it has ended and its slot is free.
    virtual std::optional<search::Individual> poll(std::uint32_t slot, const search::Population& population) = 0;
    /// Returns the used slots, in the order in which they are polled.
    [[nodiscard]] virtual std::vector<std::uint32_t> used_slots() const;
    /// Returns the estimated seconds until the evaluation ends; infinity if they are not known.
    [[nodiscard]] virtual double seconds_left(std::uint32_t) const { return std::numeric_limits<double>::infinity(); }
    /// Updates the individual's progress before take_progress() reports the individual.
    virtual void describe_progress(std::uint32_t) {}

    /// Collective over the worker. Sends `order` to the followers, and obeys it.
    Answer command(const Order& order);
    /// Collective over the worker. Returns the worst status of all ranks. problem() is then the first text of a rank
    /// with a failure.
    [[nodiscard]] Status agree(Status mine, const std::string& text);
    /// Starts `individual` in `slot`.
    void begin(std::uint32_t slot, search::Individual individual, const search::Population& population);
    /// Sets what all jobs know of an individual that has ended: time, energy, costs and limits. An evaluated individual
    /// that lacks a metric has failed.
    void complete(Slot& slot) const;
    /// Empties a slot. Returns its individual.
    search::Individual take(std::uint32_t slot);
    /// Returns the joules of an evaluation on all ranks at its end or its last snapshot, over all starts.
    [[nodiscard]] double joules_of(const Slot& slot) const { return slot.joules_before + joules_; }
    /// Estimates the joules of a running evaluation as those of the leader times the number of ranks, which do the same
    /// work.
    [[nodiscard]] double joules_so_far(std::uint32_t slot);
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
    [[nodiscard]] train::Profile* profile() noexcept { return profile_ ? &*profile_ : nullptr; }

    const config::Config& config_;
    const comm::Group& group_;
    std::vector<Slot> slots_;

private:
    [[nodiscard]] std::uint32_t free_slot() const;
    void sum_joules(std::uint32_t slot);

    std::optional<train::Profile> profile_;
    train::ProfileReport report_;
    energy::Shares shares_;
    double joules_ = search::Individual::not_measured;  ///< of the slot that was last measured, in this start
    std::string problem_;
    std::vector<search::Individual> failed_;  ///< individuals that could not start; advance() returns them
    /// An individual that ran out of memory while others trained. It starts once another evaluation has ended.
    std::optional<search::Individual> waiting_;
    bool has_room_ = false;  ///< a slot was emptied since the last attempt to start `waiting_`
    std::string failure_;    ///< of the storage, to be thrown once the results before it are returned
    double last_order_ = 0;  ///< steady seconds
};

/// Returns an evaluator of a benchmark function, which runs on the leader. `config` must have a function as its
/// objective. Both arguments must outlive the evaluator.
[[nodiscard]] std::unique_ptr<GroupEvaluator> make_function_evaluator(const config::Config& config,
                                                                      const comm::Group& group);

/// Returns the outcome of an evaluation that ended with `status`.
[[nodiscard]] search::Outcome outcome_of(Status status);

}  // namespace finch::evaluate
