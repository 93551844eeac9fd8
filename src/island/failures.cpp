#include "finch/island/failures.hpp"

#include "finch/base/format.hpp"
#include "finch/search/outcomes.hpp"

#include <algorithm>
#include <cmath>

namespace finch::island {
namespace {

constexpr double longest_pause = 60;   // s
constexpr double usual_chance = 0.01;  // failures in a row with at least this probability cause no pause

}  // namespace

Failures::Failures(int workers, int nodes, int retries, const search::Population& population)
    : workers_(static_cast<std::size_t>(workers)),
      is_on_one_node_(nodes == 1),
      most_retries_(static_cast<std::size_t>(retries)),
      has_result_(population.best() != nullptr) {
    std::set<search::Id> retried;
    for (const auto& [id, individual] : population.individuals()) {
        retried.insert(individual.retry_of);
    }
    for (const auto& [id, individual] : population.individuals()) {
        if (!retried.contains(id)) {
            retry_if_due(individual, population);
        }
    }
}

std::optional<std::string> Failures::ended(const search::Individual& one, const search::Population& population,
                                           double now) {
    has_result_ = has_result_ || one.ranks_by_loss();
    if (one.is_reused()) {
        return std::nullopt;  // no worker evaluated it
    }
    Worker& worker = at(one.attempt.worker);
    worker.has_ended = true;
    worker.node = one.node;
    ++ended_;
    if (one.started <= 0) {
        return std::nullopt;  // not evaluated: the worker is not at fault
    }
    if (!search::has_failed(one)) {
        const double seconds = one.finished - one.started;
        if (one.ranks_by_loss() && seconds > 0 && !one.is_of_earlier_start()) {
            mean_seconds_ += (seconds - mean_seconds_) / static_cast<double>(++results_);
        }
        past_failed_ += static_cast<double>(worker.failures);
        past_ended_ += static_cast<double>(std::exchange(worker.failures, 0) + 1);
        worker.next_start = 0;
        return std::nullopt;
    }
    retry_if_due(one, population);
    const std::vector<std::string> places = tried(one, population);
    if (places.back() != places.front()) {
        return std::nullopt;  // the genes failed elsewhere, too: the worker is not at fault
    }
    ++worker.failures;
    pause(one.attempt.worker, now);
    const auto succeeds = [](const Worker& other) { return other.has_ended && other.failures == 0; };
    if (worker.next_start < now + 3 * std::min(1.0, mean_seconds_) ||
        std::none_of(workers_.begin(), workers_.end(), succeeds) || !named_.insert(places.front()).second) {
        return std::nullopt;
    }
    return fmt::format(
        "the last {} evaluations of worker {} on node {} failed, while other workers succeed: {}. The worker pauses "
        "before each further evaluation, each time for longer. If it does not recover, exclude its node: sbatch "
        "--exclude={}",
        worker.failures, one.attempt.worker, worker.node, search::telling_line(one.problem), worker.node);
}

void Failures::pause(std::int32_t worker, double now) {
    const double usual = past_failed_ / std::max(1.0, past_ended_);
    const double free = usual > 0 ? std::max(1.0, std::ceil(std::log(usual_chance) / std::log(usual))) : 1;
    const double doublings = static_cast<double>(at(worker).failures) - free;
    const double seconds =
        std::min(std::max(longest_pause, mean_seconds_), std::min(1.0, mean_seconds_) * std::exp2(doublings));
    at(worker).next_start = now + (doublings >= 0 ? seconds : 0);
}

bool Failures::must_wait(std::int32_t worker, double now) const {
    const auto is_well = [](const Worker& one) { return one.failures == 0 && !one.has_left; };
    return now < workers_.at(static_cast<std::size_t>(worker)).next_start &&
           (workers() == 1 || left_ + 1 < workers()) &&
           (has_result_ || std::any_of(workers_.begin(), workers_.end(), is_well));
}

std::int64_t Failures::in_vain() const {
    const auto known = [](const Worker& one) { return one.has_left || one.has_ended; };
    return has_result_ || 2 * std::count_if(workers_.begin(), workers_.end(), known) <= std::ssize(workers_) ? 0
                                                                                                             : ended_;
}

std::vector<std::string> Failures::tried(const search::Individual& one, const search::Population& all) const {
    std::vector<std::string> places;
    for (const auto* at = &one; at != nullptr && places.size() <= most_retries_; at = all.find(at->retry_of)) {
        places.push_back(is_on_one_node_ ? std::to_string(at->attempt.worker) : at->node);
    }
    return places;
}

void Failures::retry_if_due(const search::Individual& one, const search::Population& all) {
    const bool was_evaluated = one.started > 0 && !one.is_reused() && !one.is_repeat();
    if (search::has_failed(one) && was_evaluated && tried(one, all).size() <= most_retries_) {
        waiting_.push_back(one.id);
    }
}

std::optional<search::Id> Failures::take_retry(std::int32_t worker, const search::Population& population) {
    for (auto id = waiting_.begin(); id != waiting_.end();) {
        const search::Individual* const failed = population.find(*id);
        const auto is_fit = [&, places = tried(*failed, population)](const Worker& one) {
            const std::string place = is_on_one_node_ ? std::to_string(&one - workers_.data()) : one.node;
            return !one.has_left && !one.is_sick() && std::find(places.begin(), places.end(), place) == places.end();
        };
        const bool has_fit = std::any_of(workers_.begin(), workers_.end(), is_fit);
        const bool is_late = !has_fit || (waiting_.size() > workers() && !at(worker).is_sick());
        const bool is_taken = is_fit(at(worker)) || (is_late && failed->outcome == search::Outcome::failed);
        id = is_taken || !has_fit ? waiting_.erase(id) : id + 1;
        if (is_taken) {
            return failed->id;
        }
    }
    return std::nullopt;
}

}  // namespace finch::island
