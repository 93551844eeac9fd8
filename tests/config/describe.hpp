#pragma once

#include "finch/config/schema.hpp"

#include <string>
#include <vector>

namespace finch::test {

/// An entry of the flat list of all keys, for example path "training.optimizer.sgd.momentum" or "model[].conv.kernel".
struct KeyDescription {
    std::string path;
    std::string fallback;
    std::string meaning;
    std::string accepts;
    std::vector<std::string> accepted;  ///< values at the bounds, in YAML
    std::vector<std::string> refused;   ///< values just outside of the bounds, and of other types
    bool genes = false;
};

/// Returns every key below `domain` that holds a value, in the order of the schema.
[[nodiscard]] std::vector<KeyDescription> describe(const config::Domain& domain, const std::string& path,
                                                   bool genes = false);

}  // namespace finch::test
