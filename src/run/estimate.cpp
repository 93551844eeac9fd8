#include "finch/run/estimate.hpp"

#include "finch/search/outcomes.hpp"
#include "finch/store/resume.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace finch::run {
namespace {

constexpr double either_way = 0.25;
constexpr std::int64_t fewest_evaluations = 4;
constexpr double no_limit = std::numeric_limits<double>::infinity();

Estimate around(double expected, double limit) {
    return {std::min((1 - either_way) * expected, limit), std::min(expected, limit),
            std::min((1 + either_way) * expected, limit)};
}

double number_or_no_limit(const std::optional<std::int64_t>& number) {
    return number ? static_cast<double>(*number) : no_limit;
}

/// Returns the number of evaluations of the whole search, without a limit of epochs.
double most_evaluations(const island::Budget& budget, const Workforce& workforce) {
    return std::min(number_or_no_limit(budget.evaluations), workforce.workers * number_or_no_limit(budget.generations));
}

/// Amounts of a budget: what is used, or what is left.
struct Amounts {
    double evaluations = 0;
    double epochs = 0;
    double hours = 0;
    double node_hours = 0;
};

Amounts used_amounts(const SearchBegin& begin, const search::Population& population, double now) {
    const double hours = std::max(0.0, now - begin.unix_seconds) / seconds_per_hour;
    return {.evaluations = static_cast<double>(population.evaluations()),
            .epochs = static_cast<double>(population.epochs()),
            .hours = begin.hours + hours,
            .node_hours = begin.node_hours + hours * begin.workforce.nodes};
}

double seconds_to_deadline(const island::Budget& budget, const Workforce& workforce, const Amounts& used) {
    const double hours = budget.hours.value_or(no_limit) - used.hours;
    const double node_hours = budget.node_hours.value_or(no_limit) - used.node_hours;
    return seconds_per_hour * std::max(0.0, std::min(hours, node_hours / workforce.nodes));
}

/// Returns the number of evaluations that are not finished yet. `epochs`: the mean of an evaluation.
double evaluations_left(const island::Budget& budget, const Workforce& workforce, const Amounts& used, double epochs) {
    const double by_epochs = (number_or_no_limit(budget.epochs) - used.epochs) / epochs;
    const double by_number = most_evaluations(budget, workforce) - used.evaluations;
    return std::max(0.0, epochs > 0 ? std::min(by_number, by_epochs) : by_number);
}

/// Returns the seconds that an evaluation has spent in this start, up to `now`.
double seconds_in_start(const SearchBegin& begin, const search::Individual& individual, double now) {
    const double began = individual.started > 0 ? individual.started : individual.born;
    const double end = individual.finished_training() ? individual.finished : now;
    return std::max(0.0, end - std::max(began, begin.unix_seconds));
}

/// The evaluations of this start.
struct Finished {
    std::int64_t count = 0;
    std::int64_t begun_here = 0;  ///< not resumed from an earlier start
    MeanEvaluation mean;
};

Finished finished_in_start(const SearchBegin& begin, const search::Population& population) {
    Finished finished;
    for (const auto& [id, individual] : population.individuals()) {
        if (individual.finished_training() && individual.attempt.restart == begin.restart && !individual.is_reused()) {
            ++finished.count;
            finished.begun_here += id.restart() == begin.restart ? 1 : 0;
            finished.mean.seconds += seconds_in_start(begin, individual, individual.finished);
            finished.mean.epochs += static_cast<double>(individual.own_epochs());
        }
    }
    const auto count = static_cast<double>(std::max<std::int64_t>(1, finished.count));
    finished.mean.seconds /= count;
    finished.mean.epochs /= count;
    return finished;
}

/// Returns the seconds until the last evaluation ends, without the deadline; infinity if that is not known.
double seconds_to_last(const SearchBegin& begin, const search::Population& population, const Amounts& used,
                       double now) {
    const Finished finished = finished_in_start(begin, population);
    const double slots = begin.workforce.workers * begin.workforce.slots;
    const double half = std::floor(most_evaluations(begin.budget, begin.workforce) / 2);
    const double enough = std::max<double>(fewest_evaluations, std::min(2 * slots, half));
    if (static_cast<double>(finished.begun_here) < enough || !search::has_result(population)) {
        return no_limit;
    }
    double shares = 0;   // of the running evaluations
    double longest = 0;  // until a running evaluation has run as long as the mean
    for (const search::Individual* individual : population.unfinished()) {
        if (individual->attempt.worker >= 0 && individual->attempt.restart == begin.restart) {
            const double passed = std::min(finished.mean.seconds, seconds_in_start(begin, *individual, now));
            shares += finished.mean.seconds > 0 ? passed / finished.mean.seconds : 0;
            longest = std::max(longest, finished.mean.seconds - passed);
        }
    }
    const double left = evaluations_left(begin.budget, begin.workforce, used, finished.mean.epochs) - shares;
    const double pace = (now - begin.unix_seconds) / (static_cast<double>(finished.count) + shares);
    const double seconds = std::max(left * pace, longest);
    return seconds > 0 ? seconds : no_limit;
}

}  // namespace

std::optional<SearchEstimate> estimate_search(const island::Budget& budget, const Workforce& workforce,
                                              const MeanEvaluation& mean) {
    const double deadline = seconds_to_deadline(budget, workforce, {});
    const double evaluations = evaluations_left(budget, workforce, {}, mean.epochs);
    const double pace = mean.seconds / workforce.workers;
    const double seconds = std::max(evaluations * pace, workforce.slots * mean.seconds);
    if (!std::isfinite(std::min(seconds, deadline))) {
        return std::nullopt;
    }
    return SearchEstimate{.seconds = around(seconds, deadline), .evaluations = around(deadline / pace, evaluations)};
}

std::optional<Estimate> estimate_time_left(const SearchBegin& begin, const search::Population& population, double now) {
    const Amounts used = used_amounts(begin, population, now);
    const Estimate left =
        around(seconds_to_last(begin, population, used, now), seconds_to_deadline(begin.budget, begin.workforce, used));
    return std::isfinite(left.high) ? std::optional(left) : std::nullopt;
}

std::optional<Estimate> estimate_time_left(const store::ArchiveFacts& facts, const search::Population& population,
                                           const island::Budget& budget, int slots, double now) {
    if (facts.starts.empty()) {
        return std::nullopt;
    }
    const store::Start& start = facts.starts.back();
    SearchBegin begin{.budget = budget,
                      .workforce = {.workers = start.workers, .slots = slots, .nodes = std::max(1, start.nodes)},
                      .restart = start.restart,
                      .unix_seconds = start.began};
    const std::map<std::uint32_t, double> lasted = store::seconds_of_starts(facts);
    for (const store::Start& earlier : facts.starts) {
        if (earlier.restart != start.restart) {
            const double hours_of_it = lasted.at(earlier.restart) / seconds_per_hour;
            begin.hours += hours_of_it;
            begin.node_hours += earlier.nodes * hours_of_it;
        }
    }
    return estimate_time_left(begin, population, now);
}

std::optional<double> used_share(const SearchBegin& begin, const search::Population& population, double now) {
    const Amounts used = used_amounts(begin, population, now);
    const island::Budget& budget = begin.budget;
    double share = -1;
    const auto add = [&share](double amount, double limit) {
        if (std::isfinite(limit)) {
            share = std::max(share, limit > 0 ? std::min(1.0, amount / limit) : 1.0);
        }
    };
    add(used.evaluations, most_evaluations(budget, begin.workforce));
    add(used.epochs, number_or_no_limit(budget.epochs));
    add(used.hours, budget.hours.value_or(no_limit));
    add(used.node_hours, budget.node_hours.value_or(no_limit));
    return share < 0 ? std::nullopt : std::optional(share);
}

}  // namespace finch::run
