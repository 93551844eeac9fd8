#include "finch/island/tickets.hpp"

#include <algorithm>
#include <numeric>

namespace finch::island {

std::vector<std::int64_t> generation_quotas(std::int64_t generations, const search::Population& population,
                                            int workers_before, int workers) {
    std::vector<std::int64_t> quotas(static_cast<std::size_t>(workers), generations);
    if (workers_before == 0 || population.size() == 0) {
        return quotas;
    }
    if (workers_before != workers) {
        const std::int64_t left = generations * workers_before - static_cast<std::int64_t>(population.size());
        const std::int64_t each = std::max<std::int64_t>(0, (left + workers_before - 1) / workers_before);
        std::fill(quotas.begin(), quotas.end(), each);
        return quotas;
    }
    for (const auto& [id, individual] : population.individuals()) {
        if (id.worker() < static_cast<std::uint32_t>(workers)) {
            std::int64_t& quota = quotas[id.worker()];
            quota = std::max<std::int64_t>(0, quota - 1);
        }
    }
    return quotas;
}

TicketOffice::TicketOffice(const Budget& budget, const search::Population& population, int workers_before, int workers)
    : done_(static_cast<std::size_t>(workers), 0) {
    if (budget.evaluations) {
        // An individual that is unfinished goes on and holds its ticket still, so everybody known counts.
        remaining_ = std::max<std::int64_t>(0, *budget.evaluations - static_cast<std::int64_t>(population.size()));
    }
    if (budget.generations) {
        quotas_ = generation_quotas(*budget.generations, population, workers_before, workers);
    }
}

std::int64_t TicketOffice::lease_size(std::int32_t worker, double seconds_per_evaluation) const {
    constexpr double long_evaluation = 0.01;  // s: from here on a ticket at a time shares the end of the budget best
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

std::optional<search::Tickets> TicketOffice::answer(const search::Tickets& message) {
    using Kind = search::Tickets::Kind;
    const auto worker = static_cast<std::size_t>(message.worker);
    if (message.kind == Kind::request) {
        const std::int64_t lease = lease_size(message.worker, message.seconds_per_evaluation);
        if (remaining_) {
            *remaining_ -= lease;
        }
        if (!quotas_.empty()) {
            quotas_[worker] -= lease;
        }
        return search::Tickets{lease > 0 ? Kind::grant : Kind::exhausted, message.worker, lease, 0};
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

bool TicketOffice::all_done() const noexcept {
    return std::all_of(done_.begin(), done_.end(), [](char done) { return done != 0; });
}

void TicketPurse::receive(const search::Tickets& message) {
    waiting_ = false;
    tickets_ += message.count;
    lease_ = message.count;
    exhausted_ = exhausted_ || message.kind == search::Tickets::Kind::exhausted;
}

bool TicketPurse::take() noexcept {
    if (tickets_ == 0) {
        return false;
    }
    --tickets_;
    return true;
}

bool TicketPurse::should_ask(bool wanted) noexcept {
    if (!wanted || waiting_ || exhausted_ || tickets_ > lease_ / 2) {
        return false;
    }
    waiting_ = true;
    return true;
}

std::int64_t TicketPurse::empty() noexcept {
    exhausted_ = true;
    const std::int64_t given = tickets_;
    tickets_ = 0;
    return given;
}

}  // namespace finch::island
