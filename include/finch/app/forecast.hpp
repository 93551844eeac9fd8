#pragma once

#include "finch/island/options.hpp"

#include <cstdint>
#include <span>

namespace finch::app {

inline constexpr double seconds_per_hour = 3600;

/// Who works, as far as a forecast needs it.
struct Workforce {
    int workers = 1;
    int slots = 1;  ///< of each worker, which share it
    int nodes = 1;
};

/// A sample of the individuals that a search might have.
struct SampledIndividual {
    double seconds = 0;       ///< of a worker that has nothing else to do
    std::int64_t epochs = 0;  ///< that it trains
};

/// A number with the ends of the interval in which it lies with 90 %.
struct Interval {
    double low = 0;
    double median = 0;
    double high = 0;
};

struct Forecast {
    Interval hours;
    Interval evaluations;
};

/// Whether anything but a target loss ends it.
[[nodiscard]] bool is_foreseeable(const island::Budget& budget) noexcept;

/// How long a search takes whose individuals are like those of `sample`, and how many it has: no worker waits for
/// another, and every individual trains to its end. From many searches in virtual time, each with individuals drawn
/// from `sample` drawn anew with replacement (Efron's bootstrap), so that the intervals also tell how little so many
/// say of all. A target loss is not foreseen. The same arguments give the same forecast. Throws Error if `sample` is
/// empty or the budget not foreseeable.
[[nodiscard]] Forecast forecast(const island::Budget& budget, const Workforce& workforce,
                                std::span<const SampledIndividual> sample, std::uint64_t seed);

/// Starts that a job of `seconds_of_start` each makes of so many hours, where it stops `seconds_to_stop` before its
/// time limit. 0: the limit leaves no time to train.
[[nodiscard]] std::int64_t starts_of(double hours, double limit_seconds, double seconds_of_start,
                                     double seconds_to_stop);

}  // namespace finch::app
