#pragma once

#include "finch/search/population.hpp"

#include <vector>

namespace finch::search {

/// What is in training on `island`, as far as `population` knows.
[[nodiscard]] std::vector<const Individual*> in_training_on(const Population& population, int island);

}  // namespace finch::search
