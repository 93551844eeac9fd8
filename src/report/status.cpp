#include "finch/report/status.hpp"

#include "finch/base/enum_words.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/report/tables.hpp"
#include "finch/search/attempts.hpp"
#include "finch/store/resume.hpp"

#include "population_of.hpp"

#include <algorithm>
#include <exception>

namespace finch::report {
namespace {

constexpr const char* without_result = " without a result";

/// Returns the progress of a run. Failures do not count before the run has a result: a job in which everything fails
/// must not be requeued. If starts die, Finch needs several starts to find the individual that kills them, even if no
/// individual finishes. Therefore each start that ends without an end note adds a little progress, up to a maximum
/// number of starts. After this number Finch runs unfinished individuals one at a time and charges each death to the
/// running individual.
double progress_of(const search::Population& population, const store::ArchiveFacts& facts) {
    constexpr double of_silent_end = 1e-6;
    const int silent_ends = facts.starts.empty() ? 0 : facts.starts.back().silent_ends;
    const std::size_t in_vain = search::has_result(population) ? 0 : search::Outcomes(population).without_result();
    return search::progress_of(population) - static_cast<double>(in_vain) +
           of_silent_end * std::min(silent_ends, search::most_silent_ends);
}

RunState state_of(RunState recorded, bool is_locked) {
    return is_locked ? RunState::running : recorded == RunState::running ? RunState::interrupted : recorded;
}

/// Returns the status with the run state recorded in the archive, without checking the lock.
Status recorded_status(const store::RunDirectory& directory) {
    Status status;
    status.state = RunState::running;
    status.run = directory.root().string();
    const auto recovered = store::recover(directory, OnDamage::leave, store::Curves::leave);
    if (!recovered) {
        std::error_code none;
        if (!std::filesystem::is_directory(directory.state(), none)) {
            store::throw_no_run(directory);
        }
        return status;
    }
    const search::Population population = population_of(*recovered);
    status.state = recovered->facts.state;
    status.finished = population.evaluations();
    status.unfinished = population.size() - population.finished();
    status.budget_evaluations = recovered->facts.budget_evaluations;
    status.epochs = population.epochs();
    status.budget_epochs = recovered->facts.budget_epochs;
    if (search::has_result(population)) {
        status.best = *population.best();
    }
    status.outcomes = search::Outcomes(population);
    status.config = recovered->facts.config;
    status.start = fmt::format("{:016x}/{}", recovered->facts.run, recovered->facts.restarts + 1);
    status.progress = progress_of(population, recovered->facts);
    for (const auto& [id, individual] : population.individuals()) {
        if (individual.finished_training() && !individual.is_reused()) {
            status.last_result = std::max(status.last_result, individual.finished);
        }
    }
    status.evaluations_per_hour = evaluations_per_hour(recovered->facts);
    status.deadline = recovered->facts.starts.empty() ? 0 : recovered->facts.starts.back().deadline;
    return status;
}

}  // namespace

RunState state_of(const store::RunDirectory& directory, RunState recorded) {
    return state_of(recorded, store::is_locked(directory));
}

Status status(const store::RunDirectory& directory) {
    Status status = recorded_status(directory);
    status.state = state_of(directory, status.state);
    return status;
}

std::vector<Status> statuses(const std::vector<store::RunDirectory>& directories) {
    std::vector<Status> all;
    for (const store::RunDirectory& directory : directories) {
        try {
            all.push_back(recorded_status(directory));
        } catch (const std::exception& error) {
            all.emplace_back();
            all.back().run = directory.root().string();
            all.back().problem = error.what();
        }
    }
    const std::vector<bool> locked = store::are_locked(directories);
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].state = state_of(all[i].state, locked[i]);
    }
    return all;
}

std::string to_text(RunState state) {
    return state == RunState::stopped || state == RunState::terminated ? "stopped early" : std::string(word(state));
}

std::string state_text(RunState state, const search::Population& population) {
    return to_text(state) + (state == RunState::complete && !search::has_result(population) ? without_result : "");
}

std::string state_text(const Status& status) {
    return to_text(status.state) + (status.state == RunState::complete && !status.best ? without_result : "");
}

int exit_code(const Status& status) {
    return status.state == RunState::complete && !status.best ? exit_no_result : finch::exit_code(status.state);
}

std::string status_text(const Status& status) {
    const std::string epochs =
        status.budget_epochs >= 0 ? ", " + counted_of(status.epochs, status.budget_epochs, "epoch") : "";
    const std::string unfinished = status.unfinished > 0 ? fmt::format(", {} unfinished", status.unfinished) : "";
    const std::string best = status.best ? fmt::format(", best {} {:.6g} ({})", status.measure.name, status.best->loss,
                                                       search::to_text(status.best->id))
                                         : "";
    const std::string outcomes = status.outcomes.without_result() > 0 ? ", " + status.outcomes.text() : "";
    return fmt::format("{}: {}, {}{}{}{}{}", state_text(status), printable_line(status.run),
                       counted_of(static_cast<std::int64_t>(status.finished), status.budget_evaluations, "evaluation"),
                       epochs, unfinished, best, outcomes);
}

std::string progress_text(const Status& status) {
    return fmt::format("{:.7f} {} {}", status.progress, status.start, status_text(status));
}

}  // namespace finch::report
