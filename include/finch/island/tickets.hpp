#pragma once

#include "finch/island/options.hpp"
#include "finch/search/population.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace finch::island {

/// World rank 0's side of the exact budget: leases tickets, each good for one evaluation. Nothing about tickets is
/// stored: what remains is the budget less what is settled and less the unfinished that go on. Pure logic.
class TicketOffice {
public:
    /// `population`: what the run directory knew at this start. `workers_before`: of the last start, 0 where there was
    /// none.
    TicketOffice(const Budget& budget, const search::Population& population, int workers_before, int workers);

    /// Takes in a message of a leader. The answer to a request: a grant, or `exhausted` for good.
    [[nodiscard]] std::optional<search::Tickets> answer(const search::Tickets& message);
    /// From now on everybody is told `exhausted`.
    void close() noexcept { closed_ = true; }
    /// Whether every leader has said that it needs no more tickets and holds none.
    [[nodiscard]] bool all_done() const noexcept;
    /// Tickets not leased yet, of the evaluation budget; −1 where there is none.
    [[nodiscard]] std::int64_t remaining() const noexcept { return remaining_.value_or(-1); }

private:
    [[nodiscard]] std::int64_t lease_size(std::int32_t worker, double seconds_per_evaluation) const;

    std::optional<std::int64_t> remaining_;  ///< of the evaluation budget
    std::vector<std::int64_t> quotas_;       ///< by worker, of the generation budget; empty where there is none
    std::vector<char> done_;                 ///< by worker
    bool closed_ = false;
};

/// How many evaluations each worker still has under a budget of `generations`. With as many workers as before each goes
/// on where it was; with other numbers every worker gets the generations that remained on average, rounded up.
[[nodiscard]] std::vector<std::int64_t> generation_quotas(std::int64_t generations,
                                                          const search::Population& population, int workers_before,
                                                          int workers);

/// A leader's side: the tickets in hand, and whether it is time to ask.
class TicketPurse {
public:
    /// Takes in an answer of the office.
    void receive(const search::Tickets& message);
    /// One ticket, if there is one.
    [[nodiscard]] bool take() noexcept;
    /// Whether to send a request now; counts it as sent. `wanted`: a slot is free or nearly so. Asks when the last
    /// ticket is taken, or half of a larger lease, so that short evaluations need not wait for the answer.
    [[nodiscard]] bool should_ask(bool wanted) noexcept;
    [[nodiscard]] bool exhausted() const noexcept { return exhausted_ && tickets_ == 0; }
    /// Gives up all tickets and asks no more. Returns how many there were.
    std::int64_t empty() noexcept;
    /// Whether an answer is still under way.
    [[nodiscard]] bool waiting() const noexcept { return waiting_; }

private:
    std::int64_t tickets_ = 0;
    std::int64_t lease_ = 0;  ///< size of the last grant
    bool waiting_ = false;
    bool exhausted_ = false;
};

}  // namespace finch::island
