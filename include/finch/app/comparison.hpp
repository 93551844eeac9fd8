#pragma once

#include "finch/search/individual.hpp"
#include "finch/train/training.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace finch::app {

/// The result of training an individual again.
struct Comparison {
    bool equal = false;  ///< true if all comparable epochs are equal; false if no epoch is comparable
    std::string text;    ///< a table of both curves, then the conclusion
};

/// Returns the number of recorded epochs that `ranks` ranks can reproduce bit by bit: all epochs before the first epoch
/// that a different number of ranks trained.
[[nodiscard]] std::size_t comparable_epochs(const search::Individual& recorded, int ranks);

/// Compares the recorded learning curve bit by bit with `again`, the curve that `ranks` ranks have just trained.
[[nodiscard]] Comparison compare(std::span<const Epoch> again, const search::Individual& recorded, int ranks);

}  // namespace finch::app
