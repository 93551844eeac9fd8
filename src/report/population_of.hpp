#pragma once

#include "finch/report/competition.hpp"
#include "finch/search/population.hpp"
#include "finch/store/resume.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace finch::report {

/// Returns the population of a run, with each individual on the islands on which it is active by `competition`.
inline search::Population population_of(const store::Recovered& recovered, const Competition& competition = {}) {
    search::Population population(competition.exchange, std::max(1, recovered.facts.islands), competition.costs);
    recovered.merge_into(population);
    return population;
}

using Individuals = std::vector<const search::Individual*>;

/// Returns the individuals of all islands that rank by loss, best first, except the repeats of a final choice.
inline Individuals ranked(const search::Population& population) {
    Individuals all;
    for (const auto& [id, individual] : population.individuals()) {
        if (individual.ranks_by_loss() && !individual.is_repeat()) {
            all.push_back(&individual);
        }
    }
    if (!population.costs().empty()) {
        const std::size_t count = all.size();
        return search::ranked_by_objectives(std::move(all), population.costs(), count);
    }
    std::sort(all.begin(), all.end(), [](const auto* one, const auto* other) { return better(*one, *other); });
    return all;
}

inline Individuals first_of(Individuals all, std::size_t count) {
    all.resize(std::min(all.size(), count));
    return all;
}

}  // namespace finch::report
