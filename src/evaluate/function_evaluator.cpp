#include "finch/evaluate/function_evaluator.hpp"

#include "finch/base/clock.hpp"
#include "finch/evaluate/fault.hpp"
#include "finch/evaluate/order.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace finch::evaluate {

FunctionEvaluator::FunctionEvaluator(const config::FunctionObjective& objective, std::uint64_t seed, int slots,
                                     const comm::Group& group)
    : function_(objective.make_instance()),
      duration_(objective.duration()),
      seed_(seed),
      slots_(static_cast<std::size_t>(slots)),
      group_(group) {}

void FunctionEvaluator::start(search::Individual individual) {
    individual.started = unix_seconds();
    die_of(individual.id);
    const double due = steady_seconds() + duration_.seconds(seed_, individual.id);
    running_.push_back({std::move(individual), due});
}

std::vector<search::Individual> FunctionEvaluator::advance() {
    std::vector<search::Individual> ended;
    const double now = steady_seconds();
    double next = now + 0.001;
    std::erase_if(running_, [&](Running& running) {
        if (running.due > now) {
            next = std::min(next, running.due);
            return false;
        }
        search::Individual& individual = running.individual;
        search::evaluate(function_, seed_, individual);
        individual.finished = unix_seconds();
        ended.push_back(std::move(individual));
        return true;
    });
    if (ended.empty() && !running_.empty()) {
        std::this_thread::sleep_for(std::chrono::duration<double>(next - now));
    }
    return ended;
}

bool FunctionEvaluator::wants_soon() const {
    const double soon = steady_seconds() + island::lease_ahead_seconds;
    return has_free_slot() ||
           std::any_of(running_.begin(), running_.end(), [soon](const Running& running) { return running.due < soon; });
}

void FunctionEvaluator::keep_alive(double seconds) {
    if (seconds > 0 || steady_seconds() - last_order_ > seconds_between_orders) {
        send_order(group_, {.kind = Order::Kind::wait, .seconds_to_next = seconds});
        static_cast<void>(agree(group_, Status::running));
        last_order_ = steady_seconds();
    }
}

void FunctionEvaluator::dismiss() {
    send_order(group_, Order{});
}

void follow_without_trainings(const comm::Group& group) {
    Order order{.kind = Order::Kind::wait, .seconds_to_next = 600};  // the leader reads the run first
    while (order.kind != Order::Kind::dismiss) {
        order = receive_order(group, order);
        if (order.kind == Order::Kind::wait) {
            static_cast<void>(agree(group, Status::running));
        }
    }
}

}  // namespace finch::evaluate
