#pragma once

#include "finch/island/evaluator.hpp"
#include "finch/search/function.hpp"

#include <utility>
#include <vector>

namespace finch::simulate {

/// An evaluator of a function in virtual time. An evaluation ends when its pretended duration has passed on the clock.
class VirtualEvaluator : public island::Evaluator {
public:
    /// `now` is the virtual time in seconds. `now`, `function` and `duration` must outlive the evaluator.
    VirtualEvaluator(const search::FunctionInstance& function, const search::PretendedDuration& duration,
                     std::uint64_t seed, int slots, const double& now);

    [[nodiscard]] bool has_free_slot() const override { return running_.size() < slots_; }
    [[nodiscard]] bool idle() const override { return running_.empty(); }
    [[nodiscard]] bool can_exist(const search::Genome&) const override { return true; }
    [[nodiscard]] bool wants_soon() const override;
    void start(search::Individual individual, const search::Population& population) override;
    [[nodiscard]] std::vector<search::Individual> advance(const search::Population& population) override;
    void finished(const search::Individual&, const search::Population&) override {}
    [[nodiscard]] std::vector<search::Individual> checkpoint() override { return {}; }
    [[nodiscard]] double checkpoint_seconds() const override { return 0; }
    void dismiss() override {}

    /// True if an evaluation has ended since the last call.
    [[nodiscard]] bool take_has_ended() noexcept { return std::exchange(has_ended_, false); }
    /// Returns the next time after now at which an evaluation ends or wants_soon() becomes true. Returns infinity if
    /// neither happens.
    [[nodiscard]] double next_event() const;
    /// Returns the time at which the last evaluation ended.
    [[nodiscard]] double last_end() const noexcept { return last_end_; }

private:
    struct Running {
        search::Individual individual;
        double due = 0;
        [[nodiscard]] double asks_at() const noexcept { return due - island::lease_ahead_seconds; }
    };

    const search::FunctionInstance& function_;
    const search::PretendedDuration& duration_;
    std::uint64_t seed_;
    std::size_t slots_;
    const double& now_;
    std::vector<Running> running_;
    bool has_ended_ = false;
    double last_end_;
};

}  // namespace finch::simulate
