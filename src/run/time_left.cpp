#include "finch/run/time_left.hpp"

#include "finch/search/outcomes.hpp"
#include "finch/store/resume.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

namespace finch::run {
namespace {

constexpr std::int64_t fewest_in_sample = 4;
constexpr std::size_t most_in_sample = 200;

}  // namespace

double TimeLeft::seconds_of(const search::Individual& individual, double now) const {
    const double began = individual.started > 0 ? individual.started : individual.born;
    const double end = individual.finished_training() ? individual.finished : now;
    const bool is_of_this_start = individual.id.restart() == begin_.restart;
    return std::max(0.0, end - (is_of_this_start ? began : std::max(began, begin_.unix_seconds)));
}

void TimeLeft::finished(const search::Individual& individual) {
    if (individual.is_reused()) {
        return;
    }
    const double seconds = seconds_of(individual, individual.finished);
    busy_seconds_ += seconds;
    if (individual.id.restart() == begin_.restart) {
        sample_.push_back({seconds, individual.own_epochs()});
    }
    if (sample_.size() > most_in_sample) {
        sample_.pop_front();
    }
}

std::optional<std::int64_t> TimeLeft::evaluations() const {
    std::optional<std::int64_t> most = begin_.budget.evaluations;
    if (begin_.budget.generations) {
        const std::int64_t by_workers = *begin_.budget.generations * begin_.workforce.workers;
        most = std::min(by_workers, most.value_or(by_workers));
    }
    return most;
}

double TimeLeft::seconds_to_deadline(double now) const {
    const double passed = std::max(0.0, now - begin_.unix_seconds);
    double left = std::numeric_limits<double>::infinity();
    if (begin_.budget.hours) {
        left = (*begin_.budget.hours - begin_.hours) * seconds_per_hour - passed;
    }
    if (begin_.budget.node_hours) {
        const double seconds = (*begin_.budget.node_hours - begin_.node_hours) * seconds_per_hour;
        left = std::min(left, seconds / begin_.workforce.nodes - passed);
    }
    return std::max(0.0, left);
}

std::optional<PredictionInterval> TimeLeft::seconds(const search::Population& population, double now) {
    const double deadline = seconds_to_deadline(now);
    std::vector<SampledIndividual> running;
    for (const search::Individual* individual : population.unfinished()) {
        if (individual->attempt.worker >= 0 && individual->attempt.restart == begin_.restart) {
            running.push_back({seconds_of(*individual, now), individual->epochs});
        }
    }
    const auto done = static_cast<std::int64_t>(population.evaluations() + running.size());
    island::Budget rest;
    if (const auto most = evaluations()) {
        rest.evaluations = std::max<std::int64_t>(0, *most - done);
    }
    if (begin_.budget.epochs) {
        rest.epochs = std::max<std::int64_t>(0, *begin_.budget.epochs - population.epochs());
    }
    if (deadline < std::numeric_limits<double>::infinity()) {
        rest.hours = deadline / seconds_per_hour;
    }
    if (!is_foreseeable(rest)) {
        return std::nullopt;
    }
    const std::int64_t slots = std::int64_t{begin_.workforce.workers} * begin_.workforce.slots;
    const std::int64_t enough = std::max(fewest_in_sample, std::min(2 * slots, evaluations().value_or(4 * slots) / 2));
    if (std::ssize(sample_) < enough || !search::has_result(population)) {
        return rest.hours ? std::optional(PredictionInterval{deadline, deadline, deadline}) : std::nullopt;
    }
    if (rest.evaluations.value_or(1) > 0) {  // afterwards, slots become idle
        double busy = busy_seconds_;
        for (const SampledIndividual& one : running) {
            busy += one.seconds;
        }
        const double whole = static_cast<double>(slots) * (now - begin_.unix_seconds);
        busy_share_ = whole > 0 && busy > 0 ? std::min(1.0, busy / whole) : 1;
    }
    std::vector<SampledIndividual> sample(sample_.begin(), sample_.end());
    for (std::vector<SampledIndividual>* const all : {&sample, &running}) {
        for (SampledIndividual& one : *all) {
            one.seconds /= busy_share_;
        }
    }
    return seconds_left(rest, {.workers = static_cast<int>(slots)}, sample, running, begin_.seed);
}

std::optional<double> TimeLeft::used(const search::Population& population, double now) const {
    double share = -1;
    const auto add = [&share](double used, double budget) {
        share = std::max(share, budget > 0 ? std::min(1.0, used / budget) : 1.0);
    };
    if (const auto most = evaluations()) {
        add(static_cast<double>(population.evaluations()), static_cast<double>(*most));
    }
    if (begin_.budget.epochs) {
        add(static_cast<double>(population.epochs()), static_cast<double>(*begin_.budget.epochs));
    }
    const double hours = std::max(0.0, now - begin_.unix_seconds) / seconds_per_hour;
    if (begin_.budget.hours) {
        add(begin_.hours + hours, *begin_.budget.hours);
    }
    if (begin_.budget.node_hours) {
        add(begin_.node_hours + hours * begin_.workforce.nodes, *begin_.budget.node_hours);
    }
    return share < 0 ? std::nullopt : std::optional(share);
}

std::optional<PredictionInterval> time_left(const store::ArchiveFacts& facts, const search::Population& population,
                                            const island::Budget& budget, int slots, double now) {
    if (facts.starts.empty()) {
        return std::nullopt;
    }
    const store::Start& start = facts.starts.back();
    SearchBegin begin{.budget = budget,
                      .workforce = {.workers = start.workers, .slots = slots, .nodes = std::max(1, start.nodes)},
                      .seed = facts.seed,
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
    std::vector<const search::Individual*> finished;
    for (const auto& [id, individual] : population.individuals()) {
        if (individual.finished_training() && individual.attempt.restart == start.restart) {
            finished.push_back(&individual);
        }
    }
    std::sort(finished.begin(), finished.end(), [](const auto* a, const auto* b) { return a->finished < b->finished; });
    TimeLeft time_left(begin);
    for (const search::Individual* individual : finished) {
        time_left.finished(*individual);
    }
    return time_left.seconds(population, now);
}

}  // namespace finch::run
