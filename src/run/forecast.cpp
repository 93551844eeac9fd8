#include "finch/run/forecast.hpp"

#include "finch/base/error.hpp"
#include "finch/base/random.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

namespace finch::run {
namespace {

constexpr std::uint32_t searches = 200;

/// A simulated search.
struct SimulatedSearch {
    double hours = 0;
    std::int64_t evaluations = 0;
};

/// The state of the slots at the beginning of a simulated search: for each running evaluation, its remaining seconds
/// and epochs.
using Remaining = std::vector<SampledIndividual>;

/// Returns the wall time at which the budget ends a search, in seconds.
double time_limit(const island::Budget& budget, const Workforce& workforce) {
    const double endless = std::numeric_limits<double>::infinity();
    return seconds_per_hour *
           std::min(budget.hours.value_or(endless), budget.node_hours.value_or(endless) / workforce.nodes);
}

std::int64_t most_evaluations(const island::Budget& budget, const Workforce& workforce) {
    const std::int64_t endless = std::numeric_limits<std::int64_t>::max();
    const std::int64_t by_worker = budget.generations ? *budget.generations * workforce.workers : endless;
    return std::min(budget.evaluations.value_or(endless), by_worker);
}

/// The simulated part of a search that is too long to simulate completely.
struct Begun {
    std::int64_t started = 0;
    std::int64_t epochs = 0;
    double seconds_of_slots = 0;
    double end = 0;
};

/// Extrapolates the rest of the search from its evaluation rate so far, with `slots` busy slots.
SimulatedSearch extrapolated(const island::Budget& budget, const Begun& begun, std::int64_t most, double limit,
                             int slots) {
    const double rate = static_cast<double>(slots * begun.started) / begun.seconds_of_slots;  // per second
    const double rate_of_epochs = rate * static_cast<double>(begun.epochs) / static_cast<double>(begun.started);
    double left = std::min(static_cast<double>(most - begun.started) / rate, limit - begun.end);
    if (budget.epochs) {
        left = std::min(left, static_cast<double>(*budget.epochs - begun.epochs) / rate_of_epochs);
    }
    return {.hours = (begun.end + left) / seconds_per_hour, .evaluations = begun.started + std::llround(left * rate)};
}

/// Simulates one search in virtual time: each slot starts the next individual as soon as it is free. After `many`
/// starts, the rest is extrapolated.
SimulatedSearch search_once(const island::Budget& budget, const Workforce& workforce,
                            std::span<const SampledIndividual> individuals, const Remaining& running, std::int64_t many,
                            RandomStream& random) {
    const double limit = time_limit(budget, workforce);
    const std::int64_t most = most_evaluations(budget, workforce);
    const int slots = std::max(workforce.workers * workforce.slots, static_cast<int>(running.size()));
    std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
    SimulatedSearch search;
    Begun begun;
    for (const SampledIndividual& individual : running) {
        free_at.push(individual.seconds);
        begun.epochs += individual.epochs;
        begun.end = std::max(begun.end, individual.seconds);
        search.evaluations += individual.seconds <= limit ? 1 : 0;
    }
    for (std::size_t slot = running.size(); slot < static_cast<std::size_t>(slots); ++slot) {
        free_at.push(0);
    }
    many = std::max<std::int64_t>(many, std::int64_t{20} * slots);
    for (; begun.started < most && free_at.top() < limit; ++begun.started) {
        if (begun.epochs >= budget.epochs.value_or(begun.epochs + 1)) {
            break;
        }
        if (begun.started == many) {
            return extrapolated(budget, begun, most, limit, slots);
        }
        const SampledIndividual& individual = individuals[random.below(individuals.size())];
        const double seconds = individual.seconds * workforce.slots;
        const double done = free_at.top() + seconds;
        free_at.pop();
        free_at.push(done);
        begun.epochs += individual.epochs;
        begun.seconds_of_slots += seconds;
        begun.end = std::max(begun.end, done);
        search.evaluations += done <= limit ? 1 : 0;
    }
    search.hours = std::min(begun.end, limit) / seconds_per_hour;
    return search;
}

PredictionInterval interval(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto at = [&values](double share) {
        return values[static_cast<std::size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
    };
    return {at(0.05), at(0.5), at(0.95)};
}

/// Returns a bootstrap resample of `sample`.
std::vector<SampledIndividual> resampled(std::span<const SampledIndividual> sample, RandomStream& random) {
    std::vector<SampledIndividual> drawn;
    drawn.reserve(sample.size());
    for (std::size_t i = 0; i < sample.size(); ++i) {
        drawn.push_back(sample[random.below(sample.size())]);
    }
    return drawn;
}

/// Finished evaluations of a search, and longer ones that may follow.
class Durations {
public:
    explicit Durations(std::span<const SampledIndividual> finished) : sorted_(finished.begin(), finished.end()) {
        std::sort(sorted_.begin(), sorted_.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
        double mean = 0;
        for (const SampledIndividual& one : sorted_) {
            mean += log_of(one) / static_cast<double>(sorted_.size());
        }
        constexpr double of_one = 0.3;       // as if one more evaluation were this far from the mean
        constexpr double most_spread = 0.9;  // the mean of the longer ones is finite below 1
        double squares = of_one * of_one;
        for (const SampledIndividual& one : sorted_) {
            squares += std::pow(log_of(one) - mean, 2);
        }
        const auto count = static_cast<double>(sorted_.size());
        spread_ = std::min(most_spread, std::sqrt(squares / count));
    }

    [[nodiscard]] const std::vector<SampledIndividual>& sorted() const noexcept { return sorted_; }
    /// The excess beyond the largest of n log-normal numbers falls with √(2 ln n) (Gumbel 1958).
    [[nodiscard]] SampledIndividual longer_than_all(RandomStream& random) const {
        const auto count = static_cast<double>(sorted_.size());
        return prolonged(sorted_.back(), spread_ / std::sqrt(1 + 2 * std::log(count)), random);
    }
    /// Returns a possible end of the evaluation `running`. After n evaluations, the next one is longer than all of them
    /// with a probability of 1/(n + 1) (Hill 1968).
    [[nodiscard]] SampledIndividual completed(const SampledIndividual& running, RandomStream& random) const {
        const auto longer = std::lower_bound(sorted_.begin(), sorted_.end(), running.seconds,
                                             [](const auto& one, double seconds) { return one.seconds < seconds; });
        const auto count = static_cast<std::uint64_t>(sorted_.end() - longer);
        const auto chosen = random.below(count + 1);
        return chosen < count ? *(longer + static_cast<std::ptrdiff_t>(chosen))
               : count > 0    ? longer_than_all(random)
                              : prolonged(running, spread_, random);
    }

private:
    static double log_of(const SampledIndividual& one) { return std::log(std::max(1e-9, one.seconds)); }
    /// Returns a longer evaluation. `excess`: the mean of the logarithm of the factor.
    [[nodiscard]] static SampledIndividual prolonged(const SampledIndividual& one, double excess,
                                                     RandomStream& random) {
        const double factor = std::pow(1 - random.uniform(), -excess);
        return {.seconds = factor * one.seconds, .epochs = std::llround(factor * static_cast<double>(one.epochs))};
    }

    std::vector<SampledIndividual> sorted_;
    double spread_ = 0;  ///< standard deviation of the logarithms of the seconds
};

}  // namespace

bool is_foreseeable(const island::Budget& budget) noexcept {
    return budget.evaluations || budget.generations || budget.epochs || budget.hours || budget.node_hours;
}

Forecast forecast(const island::Budget& budget, const Workforce& workforce, std::span<const SampledIndividual> sample,
                  std::uint64_t seed) {
    constexpr std::int64_t many = 10000;
    if (sample.empty() || !is_foreseeable(budget)) {
        throw Error("a forecast needs an individual that was measured, and more than a target loss");
    }
    std::vector<double> hours;
    std::vector<double> evaluations;
    for (std::uint32_t number = 0; number < searches; ++number) {
        RandomStream random(seed, Purpose::pretended_duration, 0, number);
        const auto drawn = resampled(sample, random);
        const SimulatedSearch search = search_once(budget, workforce, drawn, {}, many, random);
        hours.push_back(search.hours);
        evaluations.push_back(static_cast<double>(search.evaluations));
    }
    return {interval(std::move(hours)), interval(std::move(evaluations))};
}

PredictionInterval seconds_left(const island::Budget& budget, const Workforce& workforce,
                                std::span<const SampledIndividual> finished, std::span<const SampledIndividual> running,
                                std::uint64_t seed) {
    constexpr std::int64_t many = 300;
    if (finished.empty() || !is_foreseeable(budget)) {
        throw Error("a forecast needs a finished evaluation, and more than a target loss");
    }
    const Durations durations(finished);
    std::vector<double> hours;
    for (std::uint32_t number = 0; number < searches; ++number) {
        RandomStream random(seed, Purpose::pretended_duration, 0, number);
        std::vector<SampledIndividual> whole = durations.sorted();
        Remaining remaining;
        for (const SampledIndividual& one : running) {
            whole.push_back(durations.completed(one, random));
            remaining.push_back({.seconds = whole.back().seconds - one.seconds,
                                 .epochs = std::max<std::int64_t>(0, whole.back().epochs - one.epochs)});
        }
        whole.push_back(durations.longer_than_all(random));
        const auto drawn = resampled(whole, random);
        hours.push_back(search_once(budget, workforce, drawn, remaining, many, random).hours);
    }
    const PredictionInterval left = interval(std::move(hours));
    return {seconds_per_hour * left.low, seconds_per_hour * left.median, seconds_per_hour * left.high};
}

std::int64_t starts_of(double hours, double limit_seconds, double seconds_of_start, double seconds_to_stop) {
    const double usable = limit_seconds - seconds_of_start - seconds_to_stop;
    return usable <= 0 ? 0 : std::max<std::int64_t>(1, std::llround(std::ceil(hours * seconds_per_hour / usable)));
}

}  // namespace finch::run
