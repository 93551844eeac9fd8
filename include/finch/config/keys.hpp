#pragma once

#include "finch/config/schema.hpp"

namespace finch::config {

/// Returns all keys of a configuration. A key that accepts genes sets a member of train::Recipe; every other key sets a
/// member of Config.
[[nodiscard]] const Section& configuration();

/// Returns the paths in a configuration of the key `name` or of Finch's word for it, those of outer sections first.
[[nodiscard]] std::vector<std::string> paths_of_key(const std::string& name);

}  // namespace finch::config
