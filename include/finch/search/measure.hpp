#pragma once

#include "finch/base/epoch.hpp"

#include <string>

namespace finch::search {

/// The meaning of Individual::loss in a run: the first objective of its search.
struct Measure {
    std::string name = "loss";   ///< for log lines and column headings: "error"
    std::string title = "loss";  ///< with its unit, for axes and exports: "validation error (share of images)"
    bool is_rate = false;        ///< True if the loss is a share of samples, in [0, 1].
    /// Returns the value of the measure after an epoch, or NaN if the epoch did not measure it.
    double (*of_epoch)(const Epoch& epoch) = [](const Epoch& epoch) { return epoch.validation_loss; };
};

}  // namespace finch::search
