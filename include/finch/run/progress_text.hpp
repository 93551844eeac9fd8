#pragma once

#include "finch/base/terminal.hpp"
#include "finch/run/estimate.hpp"
#include "finch/search/individual.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The lines about the progress of a search. Pure functions.
namespace finch::run {

/// An evaluation in progress. `whole`: the number of its epochs; 0: unknown.
struct TrainingProgress {
    std::int64_t epochs = 0;
    std::int64_t whole = 0;
};

struct ProgressFacts {
    std::size_t finished = 0;
    std::optional<std::int64_t> evaluations{};  ///< the budget
    std::int64_t epochs = 0;
    std::optional<std::int64_t> budget_epochs{};
    std::optional<double> used{};  ///< share of the budget, in [0, 1]
    std::string measure = "loss";
    std::optional<double> best{};
    bool is_new_best = false;                   ///< the last evaluation is the best
    std::string failures{};                     ///< "3 failed", as Outcomes::failure_counts()
    std::optional<Estimate> left{};             ///< seconds
    std::size_t running = 0;                    ///< number of running evaluations
    std::vector<TrainingProgress> trainings{};  ///< of this worker
};

/// Returns one line: "████░░░░ 17/200 · best error 0.2046 ★ · 3 failed · 30–40 min left". The time left is left out
/// while it is unknown; before the first result, the running trainings are shown instead. On a terminal, the line has a
/// bar and fits its width. Without Unicode, the line is ASCII.
[[nodiscard]] std::string progress_text(const ProgressFacts& facts, const Terminal& terminal);

/// Returns a range of durations, rounded outwards to two digits: "30–40 min", "2.5–3 h", "about 12 s".
[[nodiscard]] std::string range_text(const Estimate& seconds, const Terminal& terminal);

/// What a line about a finished individual contains besides the individual.
struct ResultLine {
    const search::Space& space;
    std::string measure = "loss";
    bool is_rate = false;  ///< the loss is 1 − accuracy
    bool is_new_best = false;
    std::int64_t more = 0;   ///< individuals that finished since the last line
    std::size_t prefix = 0;  ///< characters before the text in its line
};

/// Returns "0.0.17: loss 0.158 ★, accuracy 94.75 %, 5 epochs in 18 s [channels = 9, …]". A line is at most 110 columns
/// wide, and as wide as the terminal at most: the genes are cut. Without Unicode or a terminal, the words "new best"
/// mark a new best individual. A failure's reason is cut on a terminal only.
[[nodiscard]] std::string result_text(const search::Individual& individual, const ResultLine& line,
                                      const Terminal& terminal);

/// Returns `text`, which follows `prefix` characters, cut to the width of a terminal; whole for a log.
[[nodiscard]] std::string on_one_row(const std::string& text, std::size_t prefix, const Terminal& terminal);

}  // namespace finch::run
