#pragma once

#include "finch/island/options.hpp"
#include "finch/search/final_choice.hpp"
#include "finch/search/population.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace finch::island {

/// A start of the run before this one.
struct EarlierStart {
    std::uint32_t restart = 0;
    int workers = 0;
};

/// World rank 0's side of the exact budget: leases evaluations. Nothing about leases is stored: what remains is the
/// budget less the finished and less the unfinished that resume. The last of it is held back for a final choice:
/// what remains is small enough only after all other evaluations. Pure logic.
class LeaseServer {
public:
    /// `population`: what the run directory knew at this start. `earlier`: the starts before it. `dealt`: unfinished
    /// individuals that each worker resumes.
    LeaseServer(const Budget& budget, const search::Population& population, std::span<const EarlierStart> earlier,
                std::span<const std::int64_t> dealt, std::optional<search::FinalChoice> final_choice = {});

    /// Begins the final choice if it is due: all other leases were given, and are finished in `population`, which is
    /// all that is known. How many evaluations it begins with; 0: it does not begin now.
    std::int64_t begin_final_choice(const search::Population& population);
    /// Whether every request has to wait for it.
    [[nodiscard]] bool waits_for_final_choice() const noexcept {
        return held_back_ > 0 && *remaining_ == 0 && !closed_;
    }
    /// Takes in a message of a leader. The answer to a request: a grant, or `exhausted` for good; nothing as long as
    /// it waits for the final choice.
    [[nodiscard]] std::optional<search::LeaseMessage> answer(const search::LeaseMessage& message);
    /// From now on everybody is told `exhausted`.
    void close() noexcept { closed_ = true; }
    [[nodiscard]] bool is_closed() const noexcept { return closed_; }
    /// Whether every leader has said that it needs no more leases and holds none.
    [[nodiscard]] bool all_done() const noexcept;

private:
    [[nodiscard]] std::int64_t lease_size(std::int32_t worker, double seconds_per_evaluation) const;

    std::optional<search::FinalChoice> final_choice_;
    std::int64_t evaluations_ = 0;           ///< of the whole run, where that is the budget
    std::optional<std::int64_t> remaining_;  ///< of the evaluation budget, for breeding
    std::int64_t held_back_ = 0;             ///< of it, for the final choice, before it begins
    std::deque<search::Repeat> repeats_;     ///< of it, since then: the individuals that the next leases name
    std::size_t looked_at_ = 0;              ///< individuals, when it was not due last
    std::vector<std::int64_t> quotas_;       ///< by worker, of the generation budget; empty if there is none
    std::vector<char> done_;                 ///< by worker
    bool closed_ = false;
};

/// How many individuals each worker may still breed under a budget of `generations`, where worker w resumes
/// `dealt[w]` unfinished ones. The earlier starts used, each, the share finished ÷ (generations × workers) of the
/// budget; what is left of it, times generations × workers now, is dealt out so that all workers evaluate equally many.
[[nodiscard]] std::vector<std::int64_t> generation_quotas(std::int64_t generations,
                                                          const search::Population& population,
                                                          std::span<const EarlierStart> earlier,
                                                          std::span<const std::int64_t> dealt);

/// A leader's side: how many evaluations it may start, and whether it is time to ask for more.
class LeaseClient {
public:
    /// An answer of the server.
    void receive(const search::LeaseMessage& message);
    /// One evaluation of an individual that is to be bred, if one is held.
    [[nodiscard]] bool take() noexcept;
    /// One that names an individual to repeat, if one is held.
    [[nodiscard]] std::optional<search::Repeat> take_repeat();
    /// One that was taken and not used.
    void give_back() noexcept { ++held_; }
    /// Whether to send a request now; counts it as sent. `wanted`: a slot is free or nearly so. Asks when the last
    /// one is taken, or half of a larger lease, so that short evaluations need not wait for the answer.
    [[nodiscard]] bool should_ask(bool wanted) noexcept;
    [[nodiscard]] bool exhausted() const noexcept { return exhausted_ && held_ == 0 && repeats_.empty(); }
    /// Gives up all that is held and asks no more. Returns how many there were; those that name an individual to
    /// repeat, which a stop alone leaves over, are not among them: the next start names them anew.
    std::int64_t return_leases() noexcept;
    /// Whether an answer is still under way.
    [[nodiscard]] bool waiting() const noexcept { return waiting_; }

private:
    std::int64_t held_ = 0;
    std::deque<search::Repeat> repeats_;
    std::int64_t lease_ = 0;  ///< size of the last grant
    bool waiting_ = false;
    bool exhausted_ = false;
};

}  // namespace finch::island
