#include "finch/app/forecast.hpp"

#include "finch/base/error.hpp"
#include "finch/base/random.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

namespace finch::app {
namespace {

struct Search {
    double hours = 0;
    std::int64_t evaluations = 0;
};

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
Search extrapolated(const island::Budget& budget, const Begun& begun, std::int64_t most, double limit, int slots) {
    const double rate = static_cast<double>(slots * begun.started) / begun.seconds_of_slots;  // per second
    const double rate_of_epochs = rate * static_cast<double>(begun.epochs) / static_cast<double>(begun.started);
    double left = std::min(static_cast<double>(most - begun.started) / rate, limit - begun.end);
    if (budget.epochs) {
        left = std::min(left, static_cast<double>(*budget.epochs - begun.epochs) / rate_of_epochs);
    }
    return {.hours = (begun.end + left) / seconds_per_hour, .evaluations = begun.started + std::llround(left * rate)};
}

/// Simulates one search in virtual time: each slot starts the next individual as soon as it is free.
Search search_once(const island::Budget& budget, const Workforce& workforce,
                   std::span<const SampledIndividual> individuals, RandomStream& random) {
    const double limit = time_limit(budget, workforce);
    const std::int64_t most = most_evaluations(budget, workforce);
    std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
    for (int slot = 0; slot < workforce.workers * workforce.slots; ++slot) {
        free_at.push(0);
    }
    const int slots = workforce.workers * workforce.slots;
    const std::int64_t many = std::max<std::int64_t>(10000, std::int64_t{20} * slots);
    Search search;
    Begun begun;
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

Interval interval(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto at = [&values](double share) {
        return values[static_cast<std::size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
    };
    return {at(0.05), at(0.5), at(0.95)};
}

}  // namespace

bool is_foreseeable(const island::Budget& budget) noexcept {
    return budget.evaluations || budget.generations || budget.epochs || budget.hours || budget.node_hours;
}

Forecast forecast(const island::Budget& budget, const Workforce& workforce, std::span<const SampledIndividual> sample,
                  std::uint64_t seed) {
    constexpr std::uint32_t searches = 200;
    if (sample.empty() || !is_foreseeable(budget)) {
        throw Error("a forecast needs an individual that was measured, and more than a target loss");
    }
    std::vector<double> hours;
    std::vector<double> evaluations;
    for (std::uint32_t number = 0; number < searches; ++number) {
        RandomStream random(seed, Purpose::pretended_duration, 0, number);
        std::vector<SampledIndividual> drawn;
        for (std::size_t i = 0; i < sample.size(); ++i) {
            drawn.push_back(sample[random.below(sample.size())]);
        }
        const Search search = search_once(budget, workforce, drawn, random);
        hours.push_back(search.hours);
        evaluations.push_back(static_cast<double>(search.evaluations));
    }
    return {interval(std::move(hours)), interval(std::move(evaluations))};
}

std::int64_t starts_of(double hours, double limit_seconds, double seconds_of_start, double seconds_to_stop) {
    const double usable = limit_seconds - seconds_of_start - seconds_to_stop;
    return usable <= 0 ? 0 : std::max<std::int64_t>(1, std::llround(std::ceil(hours * seconds_per_hour / usable)));
}

}  // namespace finch::app
