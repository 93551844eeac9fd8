#pragma once

#include "finch/search/population.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace finch::search {

/// The final choice evaluates the best individuals of a search again, with fresh seeds: the smallest of many noisy
/// losses is partly small by chance. The final choice uses the last evaluations of a budget, after all other
/// evaluations are finished. A Gaussian process over the genes (propagators/global_model.hpp) selects the candidates
/// and the winner: it also learns from the losses of similar genes.
struct FinalChoice {
    std::int64_t candidates = 8;
    std::int64_t repeats = 3;  ///< per candidate
    Space space = {};          ///< of the search. Without genes there is no model: losses select

    [[nodiscard]] std::int64_t evaluations() const noexcept { return candidates * repeats; }
};

/// An individual that the final choice evaluates again, with the results of its repeats.
struct Candidate {
    const Individual* individual = nullptr;
    std::vector<const Individual*> repeats;  ///< best first; unfinished and failed ones last
    std::int64_t finished = 0;               ///< number of finished repeats
    std::int64_t failed = 0;                 ///< number of finished repeats without a loss
    /// Mean loss of the repeats, without the candidate's own loss. It is NaN if no repeat has a loss.
    double mean = Individual::not_measured;
    double violation = 0;  ///< the largest of its repeats
    /// Predicted loss, from all results and all repeats, on the model's own scale. Without a model: `mean`.
    double predicted = Individual::not_measured;
    /// Standard deviation of the repeats' losses, with n − 1 in the denominator. It is NaN for fewer than two losses.
    double deviation = Individual::not_measured;
};

/// Returns the individuals with different genomes of all islands that are best by the model of all results without
/// repeats, best first, and the repeats of each: at most `choice.candidates`. The result depends on the contents of the
/// population, but not on the order in which its individuals were merged. Takes some 20 ms for the model.
[[nodiscard]] std::vector<Candidate> final_candidates(const Population& population, const FinalChoice& choice);

/// Selects the individuals for the next `evaluations` repeats. Each repeat evaluates the candidate that has the fewest
/// repeats; among several, the best one. Returns an empty list if there is no candidate.
[[nodiscard]] std::vector<Repeat> repeats_to_come(const Population& population, const FinalChoice& choice,
                                                  std::int64_t evaluations);

/// Returns the winner after all candidates have `choice.repeats` finished repeats. The winner is the candidate with the
/// fewest failed repeats; among several, the one with the smallest violation, then the smallest predicted loss.
/// Returns null if a candidate has fewer repeats, or if all repeats failed.
[[nodiscard]] const Candidate* winner_of(std::span<const Candidate> candidates, const FinalChoice& choice);

/// Returns the individual that provides the published weights of a run. If there is a winner, its best repeat provides
/// the weights, because the weights of repeats are always kept. The winner's own weights are kept only if it was the
/// best of all individuals when its training ended. Without a final choice or a winner, returns the best individual
/// that this run trained. Returns null if no training is complete.
[[nodiscard]] const Individual* chosen(const Population& population, const std::optional<FinalChoice>& choice);

}  // namespace finch::search
