#include "finch/base/clock.hpp"
#include "finch/evaluate/group_evaluator.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace finch::evaluate {
namespace {

/// Evaluates a benchmark function on the leader. The result is ready immediately or after a simulated duration.
class FunctionEvaluator : public GroupEvaluator {
public:
    /// `config` must have a function as its objective. Both arguments must outlive the evaluator.
    FunctionEvaluator(const config::Config& config, const comm::Group& group);

private:
    Answer on_start(const Order& order) override;
    Answer on_advance(const Order&) override { return {}; }
    [[nodiscard]] double worked(std::uint32_t) const override { return 0; }
    bool wait() override;
    std::optional<search::Individual> poll(std::uint32_t slot, const search::Population& population) override;
    [[nodiscard]] double seconds_left(std::uint32_t slot) const override;

    const search::FunctionInstance function_;
    const search::PretendedDuration duration_;
    std::vector<double> due_;  ///< by slot: steady seconds at which the evaluation ends
};

FunctionEvaluator::FunctionEvaluator(const config::Config& config, const comm::Group& group)
    : GroupEvaluator(config, group),
      function_(std::get<config::FunctionObjective>(config.objective).make_instance()),
      duration_(std::get<config::FunctionObjective>(config.objective).duration()),
      due_(slots_.size()) {}

Answer FunctionEvaluator::on_start(const Order& order) {
    due_.at(order.slot) = steady_seconds() + duration_.seconds(config_.seed, order.individual.id);
    return {};
}

/// Waits until an evaluation ends, at most a millisecond.
bool FunctionEvaluator::wait() {
    double seconds = 0.001;
    for (const std::uint32_t slot : used_slots()) {
        seconds = std::min(seconds, seconds_left(slot));
    }
    if (seconds > 0) {
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    }
    return true;
}

std::optional<search::Individual> FunctionEvaluator::poll(std::uint32_t slot,
                                                          const search::Population& /*population*/) {
    if (seconds_left(slot) > 0) {
        return std::nullopt;
    }
    search::evaluate(function_, slots_[slot].individual);
    complete(slots_[slot]);
    return take(slot);
}

double FunctionEvaluator::seconds_left(std::uint32_t slot) const {
    return due_[slot] - steady_seconds();
}

}  // namespace

std::unique_ptr<GroupEvaluator> make_function_evaluator(const config::Config& config, const comm::Group& group) {
    return std::make_unique<FunctionEvaluator>(config, group);
}

}  // namespace finch::evaluate
