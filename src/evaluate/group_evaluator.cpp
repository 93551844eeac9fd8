#include "finch/evaluate/group_evaluator.hpp"

#include "finch/base/clock.hpp"

#include <utility>

namespace finch::evaluate {

std::uint32_t GroupEvaluator::free_slot() const {
    std::uint32_t slot = 0;
    while (slot < slots() && evaluation(slot).used) {
        ++slot;
    }
    return slot;
}

bool GroupEvaluator::idle() const {
    for (std::uint32_t slot = 0; slot < slots(); ++slot) {
        if (evaluation(slot).used) {
            return false;
        }
    }
    return true;
}

std::vector<search::Individual> GroupEvaluator::take_progress() {
    std::vector<search::Individual> told;
    for (std::uint32_t slot = 0; slot < slots(); ++slot) {
        Evaluation& one = evaluation(slot);
        const bool is_at_rung = search::compares_at_rungs(config_.pruning) && one.individual.pruning->rung > one.rung;
        const bool is_further = one.individual.epochs > one.epochs;
        if (one.used && (is_at_rung || (is_further && (config_.budget.epochs || is_to_be_told(slot))))) {
            one.rung = one.individual.pruning->rung;
            one.epochs = one.individual.epochs;
            describe_progress(slot);
            told.push_back(one.individual);
        }
    }
    return told;
}

std::vector<const search::Individual*> GroupEvaluator::in_progress() const {
    std::vector<const search::Individual*> all;
    for (std::uint32_t slot = 0; slot < slots(); ++slot) {
        if (evaluation(slot).used) {
            all.push_back(&evaluation(slot).individual);
        }
    }
    return all;
}

void GroupEvaluator::judge(search::Individual& individual) const {
    auto problem = search::judge(config_.costs, config_.limits, individual);
    if (problem && individual.outcome == search::Outcome::evaluated) {
        individual.outcome = search::Outcome::failed;
        individual.problem = std::move(*problem);
    }
}

void GroupEvaluator::command(const Order& order) {
    send_order(group_, order);
    last_order_ = steady_seconds();
    obey(order);
}

void GroupEvaluator::keep_alive(double seconds) {
    if (seconds > 0 || steady_seconds() - last_order_ > seconds_between_orders) {
        command({.kind = Order::Kind::wait, .seconds_to_next = seconds});
    }
}

}  // namespace finch::evaluate
