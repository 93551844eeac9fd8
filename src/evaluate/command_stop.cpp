// The end of a start, and of an allocation: programs save, and are ended.
#include "finch/base/clock.hpp"
#include "finch/cluster/signals.hpp"
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
        const double left = cluster::seconds_left_to_stop();
        return steady_seconds() - begin < grace && (left <= 0 || left > seconds_after_programs);
    };
    const auto run_on = [&] {
        static_cast<void>(programs_.wait(seconds_between_looks));
        bool any_runs = false;
        for (const std::uint32_t slot : used_slots()) {
            any_runs = look(slot, nullptr).runs || any_runs;
        }
        return any_runs;
    };
    command({.kind = Order::Kind::signal});
    bool run = run_on();
    while (run && has_time(std::min(objective_.grace_seconds, longest_grace))) {
        run = run_on();
    }
    for (const std::uint32_t slot : used_slots()) {
        end(slot, running_[slot].end_reason, seconds_of_last_grace);
    }
    const double told = steady_seconds();
    while (run && steady_seconds() - told < seconds_after_programs - seconds_of_last_grace) {
        run = run_on();
    }
    for (const std::uint32_t slot : used_slots()) {
        command({.kind = Order::Kind::release, .slot = slot, .ends_programs = true});
        describe_progress(slot);
        add_time(slot);
        slots_[slot].individual.joules = joules_of(slots_[slot]);
        saved.push_back(take(slot));
    }
    return saved;
}

}  // namespace finch::evaluate
