#pragma once

#include "finch/base/loss_order.hpp"

#include <cstdint>
#include <limits>
#include <optional>

namespace finch::train {

/// Finds the best epoch, the earlier of two equal ones, and stops a training after `patience` epochs in a row that did
/// not improve on it. Used by the leader; the others take its word.
struct EarlyStopping {
    std::optional<std::int64_t> patience = {};              ///< nothing: never
    double best = std::numeric_limits<double>::infinity();  ///< smallest value of the objective so far
    std::int64_t best_epoch = 0;                            ///< 1 is the first; 0: none yet
    std::int64_t epochs_without_improvement = 0;

    /// Takes in the objective's value after `epoch`; returns whether it is the best so far.
    bool improved(std::int64_t epoch, double value) noexcept {
        if (!is_better_loss(value, best)) {
            ++epochs_without_improvement;
            return false;
        }
        best = value;
        best_epoch = epoch;
        epochs_without_improvement = 0;
        return true;
    }
    [[nodiscard]] bool exhausted() const noexcept { return patience && epochs_without_improvement >= *patience; }
};

}  // namespace finch::train
