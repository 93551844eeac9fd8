#include "finch/island/leases.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace finch::island {

namespace {

/// Returns the share of a budget of `generations` that the earlier starts used.
double share_used(std::int64_t generations, const search::Population& population,
                  std::span<const EarlierStart> earlier) {
    std::map<std::uint32_t, std::int64_t> finished;
    for (const auto& [id, individual] : population.individuals()) {
        if (individual.finished_training() && !individual.is_reused()) {
            const bool is_recorded = individual.attempt.worker >= 0;
            ++finished[is_recorded ? individual.attempt.restart : id.restart()];
        }
    }
    double share = 0;
    for (const EarlierStart& start : earlier) {
        const auto whole = static_cast<double>(generations) * std::max(1, start.workers);
        share += static_cast<double>(finished[start.restart]) / whole;
    }
    return share;
}

/// Returns the number of leases in use. An unfinished individual resumes and still holds its lease; an individual with
/// a reused result has no lease.
std::int64_t leases_taken(const search::Population& population) {
    return static_cast<std::int64_t>(population.evaluations() + population.unfinished().size());
}

}  // namespace

std::vector<std::int64_t> generation_quotas(std::int64_t generations, const search::Population& population,
                                            std::span<const EarlierStart> earlier,
                                            std::span<const std::int64_t> dealt) {
    const auto whole = static_cast<double>(generations) * static_cast<double>(dealt.size());
    const auto quota = std::llround(whole * std::max(0.0, 1 - share_used(generations, population, earlier)));
    std::vector<std::int64_t> quotas(dealt.size(), 0);
    // Each remaining evaluation goes to the worker with the fewest evaluations; among equals, to the first one.
    using Load = std::pair<std::int64_t, std::size_t>;
    std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
    std::int64_t left = quota;
    for (std::size_t worker = 0; worker < dealt.size(); ++worker) {
        loads.emplace(dealt[worker], worker);
        left -= dealt[worker];
    }
    for (; left > 0; --left) {
        const auto [load, worker] = loads.top();
        loads.pop();
        ++quotas[worker];
        loads.emplace(load + 1, worker);
    }
    return quotas;
}

LeaseServer::LeaseServer(const Budget& budget, const search::Population& population,
                         std::span<const EarlierStart> earlier, std::span<const std::int64_t> dealt,
                         std::optional<search::FinalChoice> final_choice)
    : final_choice_(final_choice), done_(dealt.size(), 0) {
    if (budget.evaluations) {
        evaluations_ = *budget.evaluations;
        const std::int64_t left = std::max<std::int64_t>(0, evaluations_ - leases_taken(population));
        held_back_ = final_choice ? std::min(left, final_choice->evaluations()) : 0;
        remaining_ = left - held_back_;
    }
    if (budget.generations) {
        quotas_ = generation_quotas(*budget.generations, population, earlier, dealt);
    }
}

std::int64_t LeaseServer::lease_size(std::int32_t worker, double seconds_per_evaluation) const {
    constexpr double long_evaluation = 0.01;  // s; longer evaluations share the end of the budget best if leased singly
    const auto leaders = static_cast<std::int64_t>(done_.size());
    const bool is_short = seconds_per_evaluation > 0 && seconds_per_evaluation < long_evaluation;
    const std::int64_t unbounded = is_short ? 1000 : 1;
    std::int64_t lease = remaining_ && is_short ? std::max<std::int64_t>(1, *remaining_ / (4 * leaders)) : unbounded;
    if (remaining_) {
        lease = std::min(lease, *remaining_);
    }
    if (!quotas_.empty()) {
        lease = std::min(lease, quotas_[static_cast<std::size_t>(worker)]);
    }
    return closed_ ? 0 : lease;
}

std::int64_t LeaseServer::begin_final_choice(const search::Population& population) {
    if (!waits_for_final_choice() || population.finished() != population.size() || population.size() == looked_at_) {
        return 0;
    }
    looked_at_ = population.size();
    if (leases_taken(population) != evaluations_ - held_back_) {
        return 0;  // a granted lease has no individual yet
    }
    const std::int64_t held_back = std::exchange(held_back_, 0);
    const auto come = search::repeats_to_come(population, *final_choice_, held_back);
    repeats_.assign(come.begin(), come.end());
    *remaining_ = held_back - std::ssize(repeats_);  // if no individual has a loss, the search continues
    return std::ssize(repeats_);
}

std::optional<search::LeaseMessage> LeaseServer::answer(const search::LeaseMessage& message) {
    using Kind = search::LeaseMessage::Kind;
    const auto worker = static_cast<std::size_t>(message.worker);
    if (message.kind == Kind::request && !closed_ && !repeats_.empty()) {
        search::LeaseMessage grant{Kind::grant, message.worker, 1, 0, std::move(repeats_.front())};
        repeats_.pop_front();
        return grant;
    }
    if (message.kind == Kind::request) {
        if (waits_for_final_choice()) {
            return std::nullopt;
        }
        const std::int64_t lease = lease_size(message.worker, message.seconds_per_evaluation);
        if (remaining_) {
            *remaining_ -= lease;
        }
        if (!quotas_.empty()) {
            quotas_[worker] -= lease;
        }
        return search::LeaseMessage{lease > 0 ? Kind::grant : Kind::exhausted, message.worker, lease, 0};
    }
    if (remaining_) {
        *remaining_ += message.count;
    }
    if (!quotas_.empty()) {
        quotas_[worker] += message.count;
    }
    if (message.kind == Kind::done) {
        done_[worker] = 1;
    }
    return std::nullopt;
}

bool LeaseServer::all_done() const noexcept {
    return std::all_of(done_.begin(), done_.end(), [](char done) { return done != 0; });
}

void LeaseClient::receive(const search::LeaseMessage& message) {
    waiting_ = false;
    if (message.repeat.of != search::Id{}) {
        repeats_.push_back(message.repeat);
    } else {
        held_ += message.count;
    }
    lease_ = message.count;
    exhausted_ = exhausted_ || message.kind == search::LeaseMessage::Kind::exhausted;
}

bool LeaseClient::take() noexcept {
    if (held_ == 0) {
        return false;
    }
    --held_;
    return true;
}

std::optional<search::Repeat> LeaseClient::take_repeat() {
    if (repeats_.empty()) {
        return std::nullopt;
    }
    std::optional repeat = std::move(repeats_.front());
    repeats_.pop_front();
    return repeat;
}

bool LeaseClient::should_ask(bool wanted) noexcept {
    if (!wanted || waiting_ || exhausted_ || held_ > lease_ / 2 || !repeats_.empty()) {
        return false;
    }
    waiting_ = true;
    return true;
}

std::int64_t LeaseClient::return_leases() noexcept {
    exhausted_ = true;
    repeats_.clear();
    return std::exchange(held_, 0);
}

}  // namespace finch::island
