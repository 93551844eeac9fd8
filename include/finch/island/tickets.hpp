#pragma once

#include "finch/island/options.hpp"
#include "finch/search/population.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace finch::island {

/// A start of the run before this one.
struct EarlierStart {
    std::uint32_t restart = 0;
    int workers = 0;
};

/// World rank 0's side of the exact budget: leases tickets, each good for one evaluation. Nothing about tickets is
/// stored: what remains is the budget less what is settled and less the unfinished that go on. Pure logic.
class TicketOffice {
public:
    /// `population`: what the run directory knew at this start. `earlier`: the starts before it. `dealt`: unfinished
    /// individuals that each worker goes on with.
    TicketOffice(const Budget& budget, const search::Population& population, std::span<const EarlierStart> earlier,
                 std::span<const std::int64_t> dealt);

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

/// How many individuals each worker may still breed under a budget of `generations`, where worker w goes on with
/// `dealt[w]` unfinished ones. The earlier starts used, each, the share settled ÷ (generations × workers) of the
/// budget; what is left of it, times generations × workers now, is dealt out so that all workers evaluate equally many.
[[nodiscard]] std::vector<std::int64_t> generation_quotas(std::int64_t generations,
                                                          const search::Population& population,
                                                          std::span<const EarlierStart> earlier,
                                                          std::span<const std::int64_t> dealt);

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
