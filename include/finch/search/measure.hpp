#pragma once

#include "finch/base/epoch.hpp"

#include <string>

namespace finch::search {

/// Meaning of Individual::loss in a run: the first objective of its search.
struct Measure {
    std::string name = "loss";   ///< in lines and above columns: "error"
    std::string title = "loss";  ///< with its unit, on axes and in exports: "validation error (share of images)"
    /// The same of an epoch; NaN if that does not know it.
    double (*of_epoch)(const Epoch& epoch) = [](const Epoch& epoch) { return epoch.validation_loss; };
};

}  // namespace finch::search
