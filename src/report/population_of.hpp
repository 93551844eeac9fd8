#pragma once

#include "finch/search/population.hpp"
#include "finch/store/resume.hpp"

#include <algorithm>

namespace finch::report {

/// Every individual on the island of its birth.
inline search::Population population_of(const store::Recovered& recovered) {
    search::Population population(search::ExchangeKind::none, std::max(1, recovered.facts.islands));
    recovered.merge_into(population);
    return population;
}

}  // namespace finch::report
