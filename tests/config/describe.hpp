#pragma once

#include "finch/config/schema.hpp"

#include <string>
#include <vector>

namespace finch::test {

/// A key as a flat list knows it: path "training.optimizer.sgd.momentum" or "model[].conv.kernel".
struct KeyDescription {
    std::string path;
    std::string fallback;
    std::string meaning;
    std::string accepts;
    std::vector<std::string> accepted;  ///< values at the bounds, in YAML
    std::vector<std::string> refused;   ///< values just beyond them, and of other types
    bool genes = false;
};

/// Every key below `domain` that holds a value, in their order.
[[nodiscard]] std::vector<KeyDescription> describe(const config::Domain& domain, const std::string& path,
                                                   bool genes = false);

}  // namespace finch::test
