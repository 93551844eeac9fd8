#include "virtual_evaluator.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace finch::simulate {

VirtualEvaluator::VirtualEvaluator(const search::FunctionInstance& function, const search::PretendedDuration& duration,
                                   std::uint64_t seed, int slots, const double& now)
    : function_(function),
      duration_(duration),
      seed_(seed),
      slots_(static_cast<std::size_t>(slots)),
      now_(now),
      last_end_(now) {}

bool VirtualEvaluator::wants_soon() const {
    return has_free_slot() || std::any_of(running_.begin(), running_.end(),
                                          [this](const Running& running) { return running.asks_at() <= now_; });
}

void VirtualEvaluator::start(search::Individual individual, const search::Population& /*population*/) {
    individual.started = now_;
    const double due = now_ + duration_.seconds(seed_, individual.id);
    running_.push_back({std::move(individual), due});
}

std::vector<search::Individual> VirtualEvaluator::advance(const search::Population& /*population*/) {
    std::vector<search::Individual> ended;
    std::erase_if(running_, [&](Running& running) {
        if (running.due > now_) {
            return false;
        }
        search::evaluate(function_, running.individual);
        running.individual.finished = now_;
        ended.push_back(std::move(running.individual));
        return true;
    });
    if (!ended.empty()) {
        has_ended_ = true;
        last_end_ = now_;
    }
    return ended;
}

double VirtualEvaluator::next_event() const {
    double next = std::numeric_limits<double>::infinity();
    for (const Running& running : running_) {
        if (running.due > now_) {  // else the worker has stopped searching
            next = std::min(next, running.asks_at() > now_ ? running.asks_at() : running.due);
        }
    }
    return next;
}

}  // namespace finch::simulate
