#pragma once

#include <cstdint>
#include <optional>

namespace finch::island {

/// The limits of a search, which ends when it reaches the first of them. At least one limit is set.
struct Budget {
    std::optional<std::int64_t> evaluations;  ///< of the whole run, exact, over all restarts
    std::optional<std::int64_t> generations;  ///< evaluations of each worker
    std::optional<std::int64_t> epochs;       ///< trained by all individuals, over all restarts
    std::optional<double> hours;              ///< wall time, summed over restarts
    std::optional<double> node_hours;         ///< distinct nodes times wall time, summed over restarts
    std::optional<double> target_loss;        ///< ends once the best loss is this or smaller
};

}  // namespace finch::island
