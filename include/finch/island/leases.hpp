#pragma once

#include "finch/island/options.hpp"
#include "finch/search/final_choice.hpp"
#include "finch/search/population.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace finch::island {

/// An earlier start of the run.
struct EarlierStart {
    std::uint32_t restart = 0;
    int workers = 0;
};

/// World rank 0's part in keeping the budget exact: a LeaseServer leases evaluations to the leaders. Leases are not
/// stored: a new start subtracts from the budget all finished individuals and all unfinished individuals that resume.
/// The last evaluations are held back for a final choice, which begins after all other evaluations. Pure logic.
class LeaseServer {
public:
    /// `population`: the individuals in the run directory at this start. `earlier`: the earlier starts of the run.
    /// `dealt`: the number of unfinished individuals that each worker resumes.
    LeaseServer(const Budget& budget, const search::Population& population, std::span<const EarlierStart> earlier,
                std::span<const std::int64_t> dealt, std::optional<search::FinalChoice> final_choice = {});

    /// Begins the final choice if it is due: all other leases are granted, and all of their individuals are finished in
    /// `population`, which holds all known individuals. Returns the number of evaluations with which the final choice
    /// begins; 0 if it does not begin now.
    std::int64_t begin_final_choice(const search::Population& population);
    /// True if every request must wait for the final choice.
    [[nodiscard]] bool waits_for_final_choice() const noexcept {
        return held_back_ > 0 && *remaining_ == 0 && !closed_;
    }
    /// Receives a message of a leader. Returns the answer to a request: a grant, or `exhausted`, which is final.
    /// Returns nothing for other messages, and for a request that must wait for the final choice.
    [[nodiscard]] std::optional<search::LeaseMessage> answer(const search::LeaseMessage& message);
    /// True if a request of `worker` would get a lease now.
    [[nodiscard]] bool has_lease_for(std::int32_t worker) const {
        return lease_size(worker, 0) > 0 || (!closed_ && !repeats_.empty());
    }
    /// Answers every request with `exhausted` from now on.
    void close() noexcept { closed_ = true; }
    [[nodiscard]] bool is_closed() const noexcept { return closed_; }
    /// True if every leader has reported that it needs no more leases and holds none.
    [[nodiscard]] bool all_done() const noexcept;

private:
    [[nodiscard]] std::int64_t lease_size(std::int32_t worker, double seconds_per_evaluation) const;

    std::optional<search::FinalChoice> final_choice_;
    std::int64_t evaluations_ = 0;           ///< the evaluation budget of the whole run; 0: none
    std::optional<std::int64_t> remaining_;  ///< the part of it that is left for breeding
    std::int64_t held_back_ = 0;             ///< the part of it for the final choice; 0 once that begins
    std::deque<search::Repeat> repeats_;     ///< the part of it in the final choice: individuals to evaluate again
    std::size_t looked_at_ = 0;              ///< size of the population when the final choice was last not due
    std::vector<std::int64_t> quotas_;       ///< by worker: rest of the generation budget; empty without one
    std::vector<char> done_;                 ///< by worker
    bool closed_ = false;
};

/// Returns how many individuals each worker may still breed under a budget of `generations`, if worker w resumes
/// `dealt[w]` unfinished individuals. Each earlier start used a share of the budget: finished ÷ (generations ×
/// workers). The remaining share, times generations × current workers, is distributed so that all workers evaluate
/// equally many.
[[nodiscard]] std::vector<std::int64_t> generation_quotas(std::int64_t generations,
                                                          const search::Population& population,
                                                          std::span<const EarlierStart> earlier,
                                                          std::span<const std::int64_t> dealt);

/// A leader's part in keeping the budget exact: how many evaluations the leader may start, and when it must ask for
/// more leases.
class LeaseClient {
public:
    /// Receives an answer of the LeaseServer.
    void receive(const search::LeaseMessage& message);
    /// Takes a lease for an individual that will be bred. Returns false if this leader holds none.
    [[nodiscard]] bool take() noexcept;
    /// Takes a lease that names an individual to repeat, if one is held.
    [[nodiscard]] std::optional<search::Repeat> take_repeat();
    /// Puts back a lease that was taken and not used.
    void give_back() noexcept { ++held_; }
    /// True if the caller must send a request now; the request then counts as sent. `wanted`: a slot is free or nearly
    /// free. A leader asks once only half of its last grant is left (rounded down), so short evaluations need not wait
    /// for the answer.
    [[nodiscard]] bool should_ask(bool wanted) noexcept;
    [[nodiscard]] bool exhausted() const noexcept { return exhausted_ && held_ == 0 && repeats_.empty(); }
    /// Drops the leases that name no individual, unless this leader may get no other ones. Returns their number.
    std::int64_t release() noexcept { return waiting_ || exhausted_ ? 0 : std::exchange(held_, 0); }
    /// Drops all leases and asks for no more. Returns the number of dropped leases. Does not count leases that name an
    /// individual to repeat: they remain only after a stop, and the next start grants them again.
    std::int64_t return_leases() noexcept;
    /// True if a request has no answer yet.
    [[nodiscard]] bool waiting() const noexcept { return waiting_; }

private:
    std::int64_t held_ = 0;
    std::deque<search::Repeat> repeats_;
    std::int64_t lease_ = 0;  ///< size of the last grant
    bool waiting_ = false;
    bool exhausted_ = false;
};

}  // namespace finch::island
