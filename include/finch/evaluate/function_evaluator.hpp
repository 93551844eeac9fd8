#pragma once

#include "finch/comm/group.hpp"
#include "finch/config/config.hpp"
#include "finch/island/evaluator.hpp"

#include <vector>

namespace finch::evaluate {

/// Evaluates a benchmark function, at once or after a pretended duration. Leader only; followers wait to be dismissed.
class FunctionEvaluator : public island::Evaluator {
public:
    FunctionEvaluator(const config::FunctionObjective& objective, std::uint64_t seed, int slots,
                      const comm::Group& group);

    [[nodiscard]] bool has_free_slot() const override { return running_.size() < slots_; }
    [[nodiscard]] bool idle() const override { return running_.empty(); }
    [[nodiscard]] bool can_exist(const search::Genome&) const override { return true; }
    [[nodiscard]] bool wants_soon() const override;
    void start(search::Individual individual) override;
    [[nodiscard]] std::vector<search::Individual> advance() override;
    void settled(const search::Individual&) override {}
    [[nodiscard]] std::vector<search::Individual> checkpoint() override { return {}; }
    [[nodiscard]] double checkpoint_seconds() const override { return 0; }
    void keep_alive(double seconds) override;
    void dismiss() override;

private:
    struct Running {
        search::Individual individual;
        double due = 0;  ///< steady seconds
    };

    const search::FunctionInstance function_;
    const search::PretendedDuration duration_;
    std::uint64_t seed_;
    std::size_t slots_;
    const comm::Group& group_;
    std::vector<Running> running_;
    double last_order_ = 0;  ///< steady seconds
};

/// Collective over the worker. Followers of a FunctionEvaluator: nothing to do, until they are dismissed.
void follow_without_trainings(const comm::Group& group);

}  // namespace finch::evaluate
