#include "finch/report/status.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/store/model_file.hpp"
#include "finch/store/resume.hpp"

#include "population_of.hpp"

namespace finch::report {
namespace {

/// In [0, 1), further where the saved training is further; a result counts 1.
double progress_of(const store::RunDirectory& directory, search::Id id) {
    std::vector<std::string> problems;
    const auto file = store::read_model(directory.training(id), problems, hdf5::OnDamage::leave);
    if (!file) {
        return 0;
    }
    for (const NamedArray& array : file->arrays) {
        const auto* share = std::get_if<std::vector<double>>(&array.values);
        if (array.name == "progress" && share != nullptr && share->size() == 1) {
            return 0.999 * std::clamp(share->front(), 0.0, 1.0);
        }
    }
    return 0;
}

RunState state_of(const store::RunDirectory& directory, const std::string& recorded) {
    if (store::is_locked(directory)) {
        return RunState::running;
    }
    return recorded == "complete"                              ? RunState::complete
           : recorded == "stopped" || recorded == "terminated" ? RunState::stopped_early
                                                               : RunState::interrupted;
}

}  // namespace

Status status(const store::RunDirectory& directory) {
    const auto recovered = store::recover(directory, hdf5::OnDamage::leave);
    if (!recovered) {
        throw ConfigError(fmt::format("{}: there is no run here (no population.h5)", directory.root().string()));
    }
    const search::Population population = population_of(*recovered);
    Status status;
    status.state = state_of(directory, recovered->facts.state);
    status.run = directory.root().string();
    status.settled = population.settled();
    status.unfinished = population.size() - population.settled();
    status.budget_evaluations = recovered->facts.budget_evaluations;
    if (const search::Individual* best = population.best()) {
        status.best = *best;
    }
    status.progress = static_cast<double>(population.settled());
    for (const search::Individual* individual : population.unfinished()) {
        status.progress += progress_of(directory, individual->id);
    }
    return status;
}

std::string to_text(RunState state) {
    switch (state) {
        case RunState::complete:
            return "complete";
        case RunState::stopped_early:
            return "stopped early";
        case RunState::interrupted:
            return "interrupted";
        case RunState::running:
            return "running";
    }
    return "interrupted";
}

std::string status_text(const Status& status) {
    const std::string budget =
        status.budget_evaluations >= 0 ? fmt::format(" of {}", status.budget_evaluations) : std::string();
    const std::string unfinished = status.unfinished > 0 ? fmt::format(", {} unfinished", status.unfinished) : "";
    const std::string best =
        status.best ? fmt::format(", best loss {:.6g} ({})", status.best->loss, search::to_text(status.best->id)) : "";
    return fmt::format("{}: {}, {}{} evaluations{}{}", to_text(status.state), status.run, status.settled, budget,
                       unfinished, best);
}

}  // namespace finch::report
