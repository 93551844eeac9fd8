#pragma once

#include "finch/base/loss_order.hpp"

#include <cstdint>
#include <limits>
#include <optional>

namespace finch::train {

/// The early stopping of a training. EarlyStopping finds the best epoch (the first of equal epochs) and stops the
/// training after `patience` epochs in a row without improvement. The leader of the worker decides and broadcasts the
/// decision to its other ranks.
struct EarlyStopping {
    std::optional<std::int64_t> patience = {};              ///< empty: training never stops early
    double best = std::numeric_limits<double>::infinity();  ///< smallest value of the objective so far
    std::int64_t best_epoch = 0;                            ///< counted from 1; 0: no best epoch yet
    std::int64_t epochs_without_improvement = 0;

    /// Adds the objective's value after `epoch`. Returns true if it is the best value so far.
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
