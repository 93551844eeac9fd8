#pragma once

#include "finch/search/population.hpp"
#include "finch/store/resume.hpp"

#include <algorithm>

namespace finch::report {

/// Every individual on the islands on which it is active under `exchange`.
inline search::Population population_of(const store::Recovered& recovered,
                                        search::ExchangeKind exchange = search::ExchangeKind::none) {
    search::Population population(exchange, std::max(1, recovered.facts.islands));
    recovered.merge_into(population);
    return population;
}

}  // namespace finch::report
