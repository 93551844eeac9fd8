#include "finch/search/attempts.hpp"

#include "finch/base/format.hpp"

#include <algorithm>

namespace finch::search {
namespace {

bool worker_died(const Individual& individual, const EndNotes& notes, bool is_own_fault_of_some) {
    const auto noted = notes.find(individual.attempt.worker);
    const WorkerEnd end = noted != notes.end() ? noted->second : WorkerEnd{};
    return is_own_fault_of_some ? end.own_fault > 0 : end.external < std::max(1, individual.ranks);
}

Individual charged(Individual individual, double unix_seconds) {
    Attempt& attempt = individual.attempt;
    attempt.deaths = individual.progress > attempt.progress_at_death ? 1 : attempt.deaths + 1;
    attempt.progress_at_death = individual.progress;
    if (attempt.deaths >= most_deaths) {
        individual.outcome = Outcome::failed;
        individual.finished = unix_seconds;
        individual.problem = fmt::format(
            "its worker's process died {} times in a row without progress, last in start {} on worker {} ({}): out of "
            "memory, or a fault in a library?",
            attempt.deaths, attempt.restart + 1, attempt.worker, individual.node);
    }
    return individual;
}

}  // namespace

std::vector<Individual> charge_deaths(const Population& population, std::uint32_t restart, const EndNotes& notes,
                                      bool one_at_a_time, double unix_seconds) {
    std::vector<Individual> charged_ones;
    if (notes.empty() && !one_at_a_time) {
        return charged_ones;
    }
    const bool is_own_fault_of_some =
        std::any_of(notes.begin(), notes.end(), [](const auto& noted) { return noted.second.own_fault > 0; });
    for (const Individual* individual : population.unfinished()) {
        const Attempt& attempt = individual->attempt;
        const bool was_in_training = attempt.worker >= 0 && attempt.restart == restart;
        if (was_in_training && worker_died(*individual, notes, is_own_fault_of_some)) {
            charged_ones.push_back(charged(*individual, unix_seconds));
        }
    }
    return charged_ones;
}

double progress_of(const Population& population) {
    constexpr double of_death = 1e-5;
    auto progress = static_cast<double>(population.finished());
    for (const Individual* individual : population.unfinished()) {
        progress += (1 - most_deaths * of_death) * std::clamp(individual->progress, 0.0, 1.0) +
                    of_death * std::min(individual->attempt.deaths, most_deaths);
    }
    return progress;
}

}  // namespace finch::search
