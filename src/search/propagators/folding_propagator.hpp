#pragma once

#include "finch/search/propagator.hpp"

#include "fold.hpp"
#include "fold_plan.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace finch::search {

/// A propagator with a State that is computed from an island's results one by one (fold.hpp). The propagator breeds by
/// `state.breed(stage, random)`, or by `state.breed(stage, in_training, random)` if the State uses the individuals in
/// training. A State may define `State::first_points(options, space, evaluations)` to change the default number of
/// first points.
template <class State, class Options>
class FoldingPropagator final : public Propagator {
public:
    FoldingPropagator(const Options& options, const Space& space, std::uint64_t seed)
        : plan_{.space = space, .seed = seed, .options = options} {}

    Offspring breed(const Population& population, int island, const Stage& stage, RandomStream& random) override {
        if (!state_) {
            plan_.island = island;
            plan_.workers = stage.workers;
            plan_.evaluations = stage.evaluations;
            plan_.costs = population.costs();
            state_.emplace(State(plan_));
        }
        const State& state = state_->over(population, island);
        if constexpr (is_told_of_training) {
            return state.breed(stage, in_training_on(population, island), random);
        } else {
            return state.breed(stage, random);
        }
    }
    std::size_t first_points(std::int64_t evaluations) const noexcept override {
        if constexpr (requires { State::first_points(plan_.options, plan_.space, evaluations); }) {
            return State::first_points(plan_.options, plan_.space, evaluations);
        }
        return std::max<std::size_t>(6, 2 * plan_.space.size());
    }
    bool looks_at_training() const noexcept override { return is_told_of_training; }

private:
    static constexpr bool is_told_of_training =
        requires(const State& state, const Stage& stage, const std::vector<const Individual*>& in_training,
                 RandomStream& random) {
        state.breed(stage, in_training, random);
    };

    FoldPlan<Options> plan_;
    std::optional<Fold<State>> state_;
};

}  // namespace finch::search
