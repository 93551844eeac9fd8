#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace finch::train {

/// Stops a training after `patience` epochs in a row that did not improve on the smallest validation loss so far. Used
/// by the leader; the others take its word.
struct EarlyStopping {
    std::optional<std::int64_t> patience = {};  ///< nothing: never
    double best_loss = std::numeric_limits<double>::infinity();
    std::int64_t best_epoch = 0;  ///< 1 is the first; 0: none yet
    std::int64_t epochs_without_improvement = 0;

    /// Takes in the loss of `epoch`; returns whether it is the best so far.
    bool improved(std::int64_t epoch, double loss) noexcept {
        if (!(loss < best_loss)) {
            ++epochs_without_improvement;
            return false;
        }
        best_loss = loss;
        best_epoch = epoch;
        epochs_without_improvement = 0;
        return true;
    }
    [[nodiscard]] bool exhausted() const noexcept { return patience && epochs_without_improvement >= *patience; }
};

}  // namespace finch::train
