#pragma once

#include "finch/config/schema.hpp"

namespace finch::config {

/// All keys of a configuration. Those that genes may stand in set a train::Recipe, the others a Config.
[[nodiscard]] const Section& configuration();

}  // namespace finch::config
