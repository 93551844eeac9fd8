#include "best_network.hpp"

#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/search/outcomes.hpp"

#include <string>
#include <utility>
#include <vector>

namespace finch::app {

store::ModelFile read_best_network(const store::RunDirectory& directory, const store::Recovered& recovered) {
    const std::string path = directory.best_model().string();
    std::vector<std::string> problems;
    search::Population population(search::ExchangeKind::none, 1);
    recovered.merge_into(population);
    auto file = store::read_model(path, problems, OnDamage::leave);
    if (!file) {
        throw ConfigError(problems.empty() ? fmt::format("{} is not there: the run has no trained network yet ({})",
                                                         path, search::Outcomes(population).text())
                                           : fmt::format("{} cannot be read: {}", path, fmt::join(problems, "; ")));
    }
    for (const std::string& problem : problems) {
        spdlog::warn("{}", problem);
    }
    const search::Individual* individual = population.find(file->individual.id);
    const std::string why = individual == nullptr
                                ? fmt::format("it is of {}, which the run does not know", to_text(file->individual.id))
                                : store::why_foreign(*file, recovered.facts.run, *individual);
    if (!why.empty()) {
        throw ConfigError(fmt::format("{} is not the best network of this run: {}", path, why));
    }
    return std::move(*file);
}

}  // namespace finch::app
