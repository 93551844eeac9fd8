#pragma once

#include "finch/island/options.hpp"
#include "finch/search/population.hpp"
#include "finch/store/archive.hpp"

#include <cstdint>
#include <optional>

/// Estimates of the time that a search needs: its mean pace times what is left of its budget, and a quarter either way.
namespace finch::run {

inline constexpr double seconds_per_hour = 3600;

/// An expected number, and a quarter less and more. A limit that is known exactly cuts all three.
struct Estimate {
    double low = 0;
    double expected = 0;
    double high = 0;
};

/// The workers and nodes of a search.
struct Workforce {
    int workers = 1;
    int slots = 1;  ///< per worker: its concurrent trainings, which share its speed
    int nodes = 1;
};

/// The means of an evaluation on a worker that evaluates nothing else.
struct MeanEvaluation {
    double seconds = 0;
    double epochs = 0;
};

struct SearchEstimate {
    Estimate seconds;
    Estimate evaluations;
};

/// Estimates a whole search. Assumes that no worker waits for another, and that every individual trains to its end.
/// Returns nothing if the budget has no limit except a target loss.
[[nodiscard]] std::optional<SearchEstimate> estimate_search(const island::Budget& budget, const Workforce& workforce,
                                                            const MeanEvaluation& mean);

/// The state of a search at the beginning of a start.
struct SearchBegin {
    island::Budget budget;
    Workforce workforce;
    std::uint32_t restart = 0;
    double hours = 0;       ///< used by earlier starts
    double node_hours = 0;  ///< used by earlier starts
    double unix_seconds = 0;
};

/// Estimates the seconds until the search ends, from the evaluations per second in this start. A running evaluation
/// counts as the share of the mean duration that it has run. Budgets of hours and node-hours are deadlines; only they
/// are known before each slot has finished two evaluations on average (at least four, at most half of the search), and
/// before the first loss. Returns nothing if the end is not known, or if each evaluation that is left has run longer
/// than the mean. `now`: Unix seconds.
[[nodiscard]] std::optional<Estimate> estimate_time_left(const SearchBegin& begin, const search::Population& population,
                                                         double now);

/// The same for a running search, from the files of its run: `budget` and `slots` per worker are those of its
/// configuration.
[[nodiscard]] std::optional<Estimate> estimate_time_left(const store::ArchiveFacts& facts,
                                                         const search::Population& population,
                                                         const island::Budget& budget, int slots, double now);

/// Returns the largest used share of the budgets, in [0, 1]; nothing for a target loss alone.
[[nodiscard]] std::optional<double> used_share(const SearchBegin& begin, const search::Population& population,
                                               double now);

}  // namespace finch::run
