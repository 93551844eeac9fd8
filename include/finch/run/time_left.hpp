#pragma once

#include "finch/run/forecast.hpp"
#include "finch/search/population.hpp"
#include "finch/store/archive.hpp"

#include <cstdint>
#include <deque>
#include <optional>

namespace finch::run {

/// The state of a search at the beginning of a start.
struct SearchBegin {
    island::Budget budget;
    Workforce workforce;
    std::uint64_t seed = 0;
    std::uint32_t restart = 0;
    double hours = 0;       ///< used by earlier starts
    double node_hours = 0;  ///< used by earlier starts
    double unix_seconds = 0;
};

/// Predicts the end of a search on world rank 0. The sample for seconds_left() consists of the last finished
/// evaluations of this start. Their seconds are divided by the share of the time in which the slots were busy. Budgets
/// of hours and node-hours are deadlines.
class TimeLeft {
public:
    explicit TimeLeft(const SearchBegin& begin) : begin_(begin) {}

    /// Adds an evaluation. Ignores reused results.
    void finished(const search::Individual& individual);
    /// Returns the 90 % interval of the seconds until the search ends. Only deadlines are known before each slot has
    /// finished two evaluations on average (at least four, at most half of the search), and before the first loss.
    /// Nothing if the end cannot be predicted. Early ranges contain the end less often than in 90 % of all cases,
    /// mainly if a few evaluations are much longer than the others. `now`: Unix seconds.
    [[nodiscard]] std::optional<PredictionInterval> seconds(const search::Population& population, double now);
    /// Returns the largest used share of the budgets, in [0, 1]; nothing for a target loss alone.
    [[nodiscard]] std::optional<double> used(const search::Population& population, double now) const;

private:
    /// Returns the seconds until the nearest deadline; infinity without a deadline.
    [[nodiscard]] double seconds_to_deadline(double now) const;
    /// Returns the evaluations of the whole search; nothing if their number is not limited.
    [[nodiscard]] std::optional<std::int64_t> evaluations() const;
    /// Returns the seconds that an evaluation has spent in this start, up to `now`.
    [[nodiscard]] double seconds_of(const search::Individual& individual, double now) const;

    SearchBegin begin_;
    std::deque<SampledIndividual> sample_;  ///< the last finished evaluations that began in this start
    double busy_seconds_ = 0;               ///< of all finished evaluations in this start
    double busy_share_ = 1;
};

/// Returns the time left, as TimeLeft::seconds(), of a running search from the files of its run: `budget` and `slots`
/// per worker are those of its configuration. `now`: Unix seconds.
[[nodiscard]] std::optional<PredictionInterval> time_left(const store::ArchiveFacts& facts,
                                                          const search::Population& population,
                                                          const island::Budget& budget, int slots, double now);

}  // namespace finch::run
