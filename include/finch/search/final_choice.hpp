#pragma once

#include "finch/search/population.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace finch::search {

/// The best of a search are evaluated again with fresh seeds: the smallest of many noisy losses is small by chance,
/// too. The last evaluations of a budget, once all others are finished.
struct FinalChoice {
    std::int64_t candidates = 8;
    std::int64_t repeats = 3;  ///< of each

    [[nodiscard]] std::int64_t evaluations() const noexcept { return candidates * repeats; }
};

/// An individual that is evaluated again, and what came of it.
struct Candidate {
    const Individual* individual = nullptr;
    std::vector<const Individual*> repeats;  ///< best first; the unfinished are no better than the failed
    std::int64_t finished = 0;               ///< of them
    std::int64_t failed = 0;                 ///< of the finished: without a loss
    /// Mean of the repeats' losses, without the candidate's own. NaN without any.
    double mean = Individual::not_measured;
    /// Their standard deviation, by n − 1. NaN for fewer than two.
    double deviation = Individual::not_measured;
};

/// The `count` best individuals of all islands with different genomes, best first, and their repeats. A function of the
/// population alone, whatever the order in which it came to be known. O(population).
[[nodiscard]] std::vector<Candidate> final_candidates(const Population& population, std::int64_t count);

/// The individuals that the next `evaluations` repeat: each time the candidate with the fewest repeats, the better of
/// equal ones. Empty if there is no candidate.
[[nodiscard]] std::vector<Repeat> repeats_to_come(const Population& population, const FinalChoice& choice,
                                                  std::int64_t evaluations);

/// The winner among candidates that all have `choice.repeats` finished repeats: the fewest failed repeats first, then
/// the smallest mean. Null if a candidate has fewer repeats, or all failed.
[[nodiscard]] const Candidate* winner_of(std::span<const Candidate> candidates, const FinalChoice& choice);

/// The individual whose weights a run publishes: of the winner's repeats the best, since the weights of a repeat are
/// always kept, those of its original only if it was the best of all when it ended. Without a choice, or as long as
/// there is no winner, the best that this run trained. Null if no training is complete.
[[nodiscard]] const Individual* chosen(const Population& population, const std::optional<FinalChoice>& choice);

}  // namespace finch::search
