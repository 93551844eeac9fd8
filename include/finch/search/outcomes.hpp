#pragma once

#include "finch/search/population.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace finch::search {

/// Returns whether the evaluation failed or ran out of memory. A diverged training does not count as failed, because
/// the search learns from it.
[[nodiscard]] inline bool has_failed(const Individual& individual) noexcept {
    return individual.outcome == Outcome::failed || individual.outcome == Outcome::out_of_memory;
}

/// Returns whether any training ended with a loss, in this run or in a run that provided a reused result.
[[nodiscard]] inline bool has_result(const Population& population) {
    const Individual* const best = population.best();
    return best != nullptr && best->is_complete();
}

/// Statistics of how evaluations ended: counts by outcome, and the problem texts, with equal problems grouped.
class Outcomes {
public:
    Outcomes() = default;
    explicit Outcomes(const Population& population);

    /// Adds an individual. Ignores unfinished individuals and reused results.
    void add(const Individual& individual);
    [[nodiscard]] std::size_t count(Outcome outcome) const { return counts_.at(static_cast<std::size_t>(outcome)); }
    /// Returns the number of individuals that failed, ran out of memory or diverged.
    [[nodiscard]] std::size_t without_result() const {
        return count(Outcome::failed) + count(Outcome::out_of_memory) + count(Outcome::diverged);
    }
    /// Returns the counts as text: "10 evaluated, 30 pruned, 2 failed"
    [[nodiscard]] std::string counts() const;
    /// Returns the numbers of diverged, out-of-memory and failed individuals as text: ", 2 failed". Returns an empty
    /// text if there are no such individuals.
    [[nodiscard]] std::string failure_counts() const;
    /// Returns the most frequent problems, beginning with problems of failed individuals: ": 3 × FileNotFoundError: …;
    /// 1 × exit code 2; of the pruned 2 × its last loss was nan …; failed by node: 6 of 7 on n2". Empty if none.
    [[nodiscard]] std::string problems() const;
    /// Returns counts and problems as text: "0 evaluated, 4 failed: 3 × FileNotFoundError: …; 1 × exit code 2".
    [[nodiscard]] std::string text() const { return counts() + problems(); }

private:
    struct Problem {
        std::string example;
        std::size_t count = 0;
    };
    std::array<std::size_t, words_of(Outcome{}).size()> counts_{};
    using Problems = std::map<std::string, Problem>;  ///< by without_numbers() of the problem
    [[nodiscard]] static std::string problems_text(const Problems& problems);
    /// Problems by outcome. Problems of the outcome out_of_memory are stored under failed.
    std::map<Outcome, Problems> problems_;
    std::map<std::string, std::pair<std::size_t, std::size_t>> nodes_;  ///< failed and all evaluations
};

/// Returns the most informative part of a problem text: the cause that Finch itself found, and the exception of the
/// last Python traceback, or else the last line with the name of an error. If there is none, returns the last line.
[[nodiscard]] std::string telling_line(const std::string& problem);

/// Returns a problem text on one line: what Finch itself found, and telling_line().
[[nodiscard]] std::string one_line(const std::string& problem);

/// Returns the part of a program's output up to the line that names its failure (telling_line). Returns all of `output`
/// if its last `lines` lines tell the failure, or if that line is far from the end.
[[nodiscard]] std::string_view up_to_reason(std::string_view output, std::size_t lines);

/// Returns `text` without the parts that differ by chance between individuals. Replaces words with digits by "#", and
/// paths by their last component. Exit codes, signals and errno values keep their numbers.
[[nodiscard]] std::string without_numbers(std::string_view text);

}  // namespace finch::search
