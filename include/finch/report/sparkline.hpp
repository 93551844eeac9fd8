#pragma once

#include "finch/search/population.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace finch::report {

/// Returns a character per value, "█▅▃▁": the taller, the larger. Without Unicode: "#=-_". Positive values are drawn on
/// a logarithmic scale.
[[nodiscard]] std::string sparkline(std::span<const double> values, bool has_unicode);

/// Returns the smallest loss so far after each evaluation, from the first result on, in at most `count` values.
[[nodiscard]] std::vector<double> best_so_far(const search::Population& population, std::size_t count);

}  // namespace finch::report
