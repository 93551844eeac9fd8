// The end of a start, and of an allocation: programs save, and are ended.
#include "finch/base/clock.hpp"
#include "finch/evaluate/command_evaluator.hpp"

#include <algorithm>
#include <utility>

namespace finch::evaluate {
namespace {

constexpr double seconds_after_programs = 3;  // reserved within a stop's time for journals and the archive
constexpr double seconds_of_last_grace = 1;
constexpr double longest_grace = 120;

}  // namespace

double CommandEvaluator::stop_seconds() const {
    return idle() ? 0 : std::min(objective_.grace_seconds, longest_grace) + 2 * seconds_after_programs;
}

/// Forwards the stop to the programs, waits until they have saved, and ends the programs that have not saved in time.
std::vector<search::Individual> CommandEvaluator::stop() {
    std::vector<search::Individual> saved;
    if (idle()) {
        return saved;
    }
    const double begin = steady_seconds();
    // A more urgent stop may follow while programs save.
    const auto has_time = [&](double grace) {
        const double left = seconds_left_();
        return steady_seconds() - begin < grace && (left <= 0 || left > seconds_after_programs);
    };
    const auto run_on = [&] {
        static_cast<void>(programs_.wait(seconds_between_looks));
        look();
        const std::vector<Programs::Standing> standings = standings_;  // other Orders clear standings_
        for (std::uint32_t slot = 0; slot < running_.size(); ++slot) {
            take_reports(slot);
        }
        return std::any_of(standings.begin(), standings.end(), [](const auto& standing) { return standing.runs; });
    };
    command({.kind = Order::Kind::signal});
    bool run = run_on();
    while (run && has_time(std::min(objective_.grace_seconds, longest_grace))) {
        run = run_on();
    }
    for (std::uint32_t slot = 0; slot < running_.size(); ++slot) {
        if (running_[slot].used) {
            end(slot, running_[slot].end_reason, seconds_of_last_grace);
        }
    }
    const double told = steady_seconds();
    while (run && steady_seconds() - told < seconds_after_programs - seconds_of_last_grace) {
        run = run_on();
    }
    for (std::uint32_t slot = 0; slot < running_.size(); ++slot) {
        if (running_[slot].used) {
            saved.push_back(interrupted(slot));
        }
    }
    return saved;
}

search::Individual CommandEvaluator::interrupted(std::uint32_t slot) {
    command({.kind = Order::Kind::release, .slot = slot, .ends_programs = true});
    describe_progress(slot);
    search::Individual individual = std::move(running_[slot].individual);
    add_time(individual, running_[slot].began);
    running_[slot] = Running{};
    return individual;
}

}  // namespace finch::evaluate
