#pragma once

#include "finch/config/schema.hpp"

namespace finch::config {

/// Returns all keys of a configuration. A key that accepts genes sets a member of train::Recipe; every other key sets a
/// member of Config.
[[nodiscard]] const Section& configuration();

}  // namespace finch::config
