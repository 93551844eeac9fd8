#pragma once

#include "finch/search/population.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace finch::search {

/// Whether its evaluation broke. A loss that diverged is an answer about the genes, which a search learns from.
[[nodiscard]] inline bool has_failed(const Individual& individual) noexcept {
    return individual.outcome == Outcome::failed || individual.outcome == Outcome::out_of_memory;
}

/// Whether any training of the run, or of one whose result was taken over, came to its end with a loss.
[[nodiscard]] inline bool has_result(const Population& population) {
    const Individual* const best = population.best();
    return best != nullptr && best->is_complete();
}

/// How evaluations ended: counts by outcome, and the problems of those that have one, equal ones together.
class Outcomes {
public:
    Outcomes() = default;
    explicit Outcomes(const Population& population);

    /// Ignores the unfinished, and results that were taken over.
    void add(const Individual& individual);
    [[nodiscard]] std::size_t count(Outcome outcome) const { return counts_.at(static_cast<std::size_t>(outcome)); }
    /// Number of individuals without a result.
    [[nodiscard]] std::size_t without_result() const {
        return count(Outcome::failed) + count(Outcome::out_of_memory) + count(Outcome::diverged);
    }
    /// "10 evaluated, 30 pruned, 2 failed"
    [[nodiscard]] std::string counts() const;
    /// The same without the evaluated and the pruned: ", 2 failed". Empty if all gave a result.
    [[nodiscard]] std::string failure_counts() const;
    /// ": 3 × FileNotFoundError: …; 1 × exit code 2; of the pruned 2 × its last loss was nan …": the most frequent
    /// ones, those of the failed first. Empty if there is none.
    [[nodiscard]] std::string problems() const;
    /// "0 evaluated, 4 failed: 3 × FileNotFoundError: …; 1 × exit code 2".
    [[nodiscard]] std::string text() const { return counts() + problems(); }

private:
    struct Problem {
        std::string example;
        std::size_t count = 0;
    };
    std::array<std::size_t, words_of(Outcome{}).size()> counts_{};
    using Problems = std::map<std::string, Problem>;  ///< by without_numbers()
    [[nodiscard]] static std::string problems_text(const Problems& problems);
    /// Problems by outcome; those of out_of_memory under failed.
    std::map<Outcome, Problems> problems_;
};

/// The first and the last line of a problem.
[[nodiscard]] std::string one_line(const std::string& problem);

/// `text` without what differs by chance between individuals: words with digits become "#", and of a path the last part
/// stays. Exit codes, signals and errnos keep their numbers.
[[nodiscard]] std::string without_numbers(std::string_view text);

}  // namespace finch::search
