#pragma once

#include "finch/report/competition.hpp"
#include "finch/search/population.hpp"
#include "finch/store/resume.hpp"

#include <algorithm>

namespace finch::report {

/// Every individual on the islands on which it is active by `competition`.
inline search::Population population_of(const store::Recovered& recovered, const Competition& competition = {}) {
    search::Population population(competition.exchange, std::max(1, recovered.facts.islands), competition.costs);
    recovered.merge_into(population);
    return population;
}

}  // namespace finch::report
