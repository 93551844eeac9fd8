#pragma once

#include "finch/search/population.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace finch::report {

/// Returns a character per value, "█▅▃▁" (without Unicode "#=-_"): the taller, the larger; a cross if it is not finite.
/// The scale is logarithmic if all values are positive and span more than a factor of 20. Above `width` values, draws
/// every n-th.
[[nodiscard]] std::string sparkline(std::span<const double> values, bool has_unicode, std::size_t width = 80);

/// Returns the smallest loss so far after each evaluation, from the first result on, in at most `count` values.
[[nodiscard]] std::vector<double> best_so_far(const search::Population& population, std::size_t count);

}  // namespace finch::report
