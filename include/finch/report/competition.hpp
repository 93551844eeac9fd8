#pragma once

#include "finch/search/final_choice.hpp"
#include "finch/search/measure.hpp"

#include <optional>
#include <vector>

namespace finch::report {

/// The rules by which the individuals of a run compete, taken from the configuration.
struct Competition {
    search::ExchangeKind exchange = search::ExchangeKind::none;
    std::vector<search::Cost> costs = {};
    std::optional<search::FinalChoice> final_choice = {};
    search::Measure measure = {};
};

}  // namespace finch::report
