#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/named_array.hpp"
#include "finch/report/tables.hpp"
#include "finch/store/model_file.hpp"

#include <algorithm>
#include <cmath>

namespace finch::report {
namespace {

search::Population merged(const store::Recovered& run) {
    search::Population population(search::ExchangeKind::none, std::max(1, run.facts.islands));
    for (const search::Record& record : run.records) {
        population.merge(record);
    }
    return population;
}

/// How much of the unfinished trainings is saved: each counts as less than one evaluation.
double saved_progress(const store::RunDirectory& directory, const search::Population& population) {
    double progress = 0;
    for (const search::Individual* individual : population.unfinished()) {
        std::error_code none;
        if (!std::filesystem::exists(directory.training(individual->id), none)) {
            continue;
        }
        std::vector<std::string> problems;
        if (const auto saved = store::read_model(directory.training(individual->id), problems)) {
            for (const NamedArray& array : saved->arrays) {
                const auto* value = std::get_if<std::vector<double>>(&array.values);
                progress +=
                    array.name == "progress" && value != nullptr && !value->empty() ? 0.999 * value->front() : 0;
            }
        }
    }
    return progress;
}

}  // namespace

Status status(const store::RunDirectory& directory) {
    Status now;
    now.best_loss = std::nan("");
    const auto run = store::recover(directory);
    if (!run) {
        throw ConfigError(fmt::format("{}: there is no run here", directory.root().string()));
    }
    const search::Population population = merged(*run);
    now.settled = population.settled();
    now.unfinished = population.size() - population.settled();
    now.budget_evaluations = run->facts.budget_evaluations;
    now.best_loss = population.best() != nullptr ? population.best()->loss : now.best_loss;
    now.progress = static_cast<double>(now.settled) + saved_progress(directory, population);
    if (store::is_locked(directory)) {
        now.state = RunState::running;
    } else if (run->facts.state == "complete") {
        now.state = RunState::complete;
    } else {
        now.state = run->facts.state == "stopped" ? RunState::stopped_early : RunState::interrupted;
    }
    return now;
}

std::string status_text(const Status& status) {
    const char* word = status.state == RunState::complete        ? "complete"
                       : status.state == RunState::stopped_early ? "stopped early"
                       : status.state == RunState::interrupted   ? "interrupted"
                                                                 : "running";
    std::string text = fmt::format("{}: {}{} evaluated", word, status.settled,
                                   status.budget_evaluations >= 0 ? fmt::format("/{}", status.budget_evaluations) : "");
    if (status.unfinished > 0) {
        text += fmt::format(", {} unfinished", status.unfinished);
    }
    return std::isfinite(status.best_loss) ? text + fmt::format(", best loss {:.5g}", status.best_loss) : text;
}

}  // namespace finch::report
