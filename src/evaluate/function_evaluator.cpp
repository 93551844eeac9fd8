#include "finch/evaluate/function_evaluator.hpp"

#include "finch/base/clock.hpp"
#include "finch/evaluate/fault.hpp"
#include "finch/evaluate/order.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

namespace finch::evaluate {

FunctionEvaluator::FunctionEvaluator(const config::FunctionObjective& objective, std::uint64_t seed, int slots,
                                     const comm::Group& group)
    : objective_(objective),
      function_(search::find_function(objective.function)),
      seed_(seed),
      slots_(static_cast<std::size_t>(slots)),
      group_(group) {}

void FunctionEvaluator::start(search::Individual individual) {
    RandomStream random(seed_, Purpose::pretended_duration, individual.id.value);
    const double seconds =
        objective_.seconds > 0 ? objective_.seconds * std::exp(objective_.spread * random.normal()) : 0;
    individual.started = unix_seconds();
    die_of(individual.id);
    running_.push_back({std::move(individual), steady_seconds() + seconds});
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
        RandomStream noise(seed_, Purpose::function_noise, individual.id.value);
        individual.loss = search::evaluate(function_, individual.genome, noise);
        individual.outcome = std::isfinite(individual.loss) ? search::Outcome::evaluated : search::Outcome::diverged;
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
    const double soon = steady_seconds() + 0.05;
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
