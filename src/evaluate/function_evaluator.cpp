#include "finch/evaluate/function_evaluator.hpp"

#include "finch/base/clock.hpp"
#include "finch/evaluate/fault.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace finch::evaluate {

FunctionEvaluator::FunctionEvaluator(const config::Config& config, const comm::Group& group)
    : GroupEvaluator(config, group),
      function_(std::get<config::FunctionObjective>(config.objective).make_instance()),
      duration_(std::get<config::FunctionObjective>(config.objective).duration()),
      running_(static_cast<std::size_t>(config.workers.slots)) {}

void FunctionEvaluator::start(search::Individual individual) {
    individual.started = unix_seconds();
    die_of(individual.id);
    Running& running = running_[free_slot()];
    running.due = steady_seconds() + duration_.seconds(config_.seed, individual.id);
    running.individual = std::move(individual);
    running.used = true;
}

std::vector<search::Individual> FunctionEvaluator::advance() {
    std::vector<search::Individual> ended;
    const double now = steady_seconds();
    double next = now + 0.001;
    for (Running& running : running_) {
        if (running.used && running.due > now) {
            next = std::min(next, running.due);
        } else if (running.used) {
            search::evaluate(function_, running.individual);
            running.individual.finished = unix_seconds();
            judge(running.individual);
            ended.push_back(std::move(running.individual));
            running = {};
        }
    }
    if (ended.empty() && !idle()) {
        std::this_thread::sleep_for(std::chrono::duration<double>(next - now));
    }
    return ended;
}

bool FunctionEvaluator::wants_soon() const {
    const double soon = steady_seconds() + island::lease_ahead_seconds;
    return std::any_of(running_.begin(), running_.end(),
                       [soon](const Running& running) { return !running.used || running.due < soon; });
}

}  // namespace finch::evaluate
