#pragma once

#include <string>

namespace finch::hdf5 {

/// "1.10.8" as loaded, and what the program was built with where that is another one. Says whether locking is on.
[[nodiscard]] std::string library_version();

}  // namespace finch::hdf5
