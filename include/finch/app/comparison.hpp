#pragma once

#include "finch/search/individual.hpp"
#include "finch/train/training.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace finch::app {

/// Result of training an individual once more.
struct Comparison {
    bool equal = false;  ///< every epoch that can be compared is; false if none can
    std::string text;    ///< both curves side by side, and the finding in words
};

/// How many of the recorded epochs `ranks` ranks can train again to the same bits: those before the first that another
/// number of ranks trained.
[[nodiscard]] std::size_t comparable_epochs(const search::Individual& recorded, int ranks);

/// `again` is what `ranks` ranks found; equal to the last bit.
[[nodiscard]] Comparison compare(std::span<const Epoch> again, const search::Individual& recorded, int ranks);

}  // namespace finch::app
