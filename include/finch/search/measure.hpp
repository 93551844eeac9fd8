#pragma once

#include "finch/base/epoch.hpp"

#include <string>

namespace finch::search {

/// What Individual::loss is in a run: the first thing that its search minimises.
struct Measure {
    std::string name = "loss";   ///< in lines and above columns: "error"
    std::string title = "loss";  ///< with its unit, on axes and in exports: "validation error (share of images)"
    /// The same of an epoch; NaN if that does not know it.
    double (*of_epoch)(const Epoch& epoch) = [](const Epoch& epoch) { return epoch.validation_loss; };
};

}  // namespace finch::search
