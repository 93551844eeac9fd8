#pragma once

#include "finch/island/options.hpp"

#include <cstdint>
#include <span>

namespace finch::run {

inline constexpr double seconds_per_hour = 3600;

/// The workers and nodes that a forecast assumes.
struct Workforce {
    int workers = 1;
    int slots = 1;  ///< per worker: its concurrent trainings, which share its speed
    int nodes = 1;
};

/// One measured individual, an element of the sample for forecast().
struct SampledIndividual {
    double seconds = 0;       ///< training time on a worker that trains nothing else
    std::int64_t epochs = 0;  ///< trained in this time
};

/// A median and its 90 % interval.
struct PredictionInterval {
    double low = 0;
    double median = 0;
    double high = 0;
};

struct Forecast {
    PredictionInterval hours;
    PredictionInterval evaluations;
};

/// True if the budget has any limit except a target loss.
[[nodiscard]] bool is_foreseeable(const island::Budget& budget) noexcept;

/// Predicts the duration of a search and its number of evaluations. Assumes that the individuals resemble those in
/// `sample`, that no worker waits for another, and that every individual trains to its end. Ignores a target loss.
///
/// The prediction simulates many searches in virtual time. Each simulated search draws its individuals from a bootstrap
/// resample of `sample` (Efron), so the intervals include the uncertainty of a small sample. The same arguments give
/// the same forecast. Throws Error if `sample` is empty or is_foreseeable(budget) is false.
[[nodiscard]] Forecast forecast(const island::Budget& budget, const Workforce& workforce,
                                std::span<const SampledIndividual> sample, std::uint64_t seed);

/// Predicts the seconds until the rest of a search ends. `budget`: the rest of the budget, without the running
/// evaluations. `finished`: evaluations, the sample. `running`: the seconds and epochs that each running evaluation has
/// run. Assumes that the other evaluations resemble those that began: a running evaluation ends like a finished one
/// that took longer, so the long evaluations, which finish last, are not left out. Otherwise as forecast(). Throws
/// Error if `finished` is empty or is_foreseeable(budget) is false.
[[nodiscard]] PredictionInterval seconds_left(const island::Budget& budget, const Workforce& workforce,
                                              std::span<const SampledIndividual> finished,
                                              std::span<const SampledIndividual> running, std::uint64_t seed);

/// Returns the number of job starts that a search of `hours` needs. Every start first spends `seconds_of_start`, and
/// stops `seconds_to_stop` before the time limit. Returns 0 if the limit leaves no time to train.
[[nodiscard]] std::int64_t starts_of(double hours, double limit_seconds, double seconds_of_start,
                                     double seconds_to_stop);

}  // namespace finch::run
