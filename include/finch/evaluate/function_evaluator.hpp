#pragma once

#include "finch/evaluate/group_evaluator.hpp"

#include <vector>

namespace finch::evaluate {

/// An evaluator of a benchmark function. The result is ready immediately or after a simulated duration. Leader only;
/// followers do nothing.
class FunctionEvaluator : public GroupEvaluator {
public:
    /// `config` must have a function as its objective. Both arguments must outlive the evaluator.
    FunctionEvaluator(const config::Config& config, const comm::Group& group);

    [[nodiscard]] bool wants_soon() const override;
    void start(search::Individual individual) override;
    [[nodiscard]] std::vector<search::Individual> advance() override;
    [[nodiscard]] std::vector<search::Individual> take_progress() override { return {}; }
    void finished(const search::Individual&) override {}
    [[nodiscard]] std::vector<search::Individual> checkpoint() override { return {}; }
    [[nodiscard]] double checkpoint_seconds() const override { return 0; }

private:
    struct Running : Evaluation {
        double due = 0;  ///< steady seconds at which it ends
    };
    using GroupEvaluator::evaluation;
    [[nodiscard]] std::uint32_t slots() const override { return static_cast<std::uint32_t>(running_.size()); }
    [[nodiscard]] const Evaluation& evaluation(std::uint32_t slot) const override { return running_[slot]; }
    void obey(const Order& order) override { obey_alone(group_, order); }

    const search::FunctionInstance function_;
    const search::PretendedDuration duration_;
    std::vector<Running> running_;
};

}  // namespace finch::evaluate
